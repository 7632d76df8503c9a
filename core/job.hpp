#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/codec.hpp"
#include "core/fields.hpp"

namespace nebula {

enum class Precision { float32, bf16 };

struct Optimizer {
  /// AdamW with a linear warm-up, then a cosine down to min_learning_rate at the last step.
  double learning_rate = 1e-3;
  double min_learning_rate = 1e-4;
  int warmup_steps = 10;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  /// Gradients are scaled down to this norm over all stages; 0 means never.
  double clip_norm = 1.0;
  bool operator==(const Optimizer&) const = default;
};

/// What is to be trained, apart from the model's shape.
struct Job {
  std::string name;
  /// Sequences in one step, over all micro-batches and replicas.
  int global_batch = 0;
  /// Tokens that a sequence predicts; length + 1 ids are read.
  int sequence_length = 0;
  int steps = 0;
  Precision precision = Precision::float32;
  std::uint64_t seed = 1;
  Optimizer optimizer;
  /// Targets with this id do not count in the loss; -1 means that all count.
  int ignored_token = -1;
  /// Steps between checkpoints; 0 means only at the end and on a signal.
  int checkpoint_every = 0;
  /// Held-out sequences evaluated at the end.
  int heldout_sequences = 64;
  /// What the planner may choose from.
  std::vector<CodecSettings> activation_codecs = {CodecSettings{}};
  std::vector<CodecSettings> gradient_codecs = {CodecSettings{}};
  bool operator==(const Job&) const = default;

  double tokens_per_step() const { return double(global_batch) * sequence_length; }
};

Job read_job_file(const std::string& path);
Job read_job(Fields fields);
Node write_job(const Job& job);

}  // namespace nebula
