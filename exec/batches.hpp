#pragma once

#include <cstdint>

#include <torch/torch.h>

#include "core/job.hpp"
#include "core/model.hpp"
#include "exec/token_file.hpp"

namespace nebula {

/// Inputs and targets of some sequences, both (n, sequence_length) int64: a target is the token
/// after its input.
struct Batch {
  torch::Tensor inputs;
  torch::Tensor targets;
};

/// What a step trains on, as a function of (seed, step, sequence) alone: the same for every split,
/// micro-batch size and restart. A sequence starts anywhere in the file, as nanoGPT's do.
class Batches {
 public:
  /// Throws InputError when the file is shorter than a sequence, or holds ids beyond the model's
  /// vocabulary (checked where the file tells its vocabulary, else by looking at every id).
  Batches(TokenFile file, const Job& job, const Model& model);

  /// Sequences [first, first + n) of a step's global batch.
  Batch training(int step, int first, int n) const;
  /// Sequences [first, first + n) of `total` spread evenly over the file.
  Batch heldout(int first, int n, int total) const;

  const TokenFile& file() const { return file_; }

 private:
  Batch read(std::span<const std::int64_t> starts) const;

  TokenFile file_;
  std::uint64_t seed_;
  int length_;
};

}  // namespace nebula
