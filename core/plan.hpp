#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/cluster.hpp"
#include "core/codec.hpp"
#include "core/job.hpp"
#include "core/model.hpp"
#include "core/schedules.hpp"

namespace nebula {

/// What crosses a boundary.
enum class Payload { activations, token_ids };

/// A contiguous run of a part's layers on one device group.
struct StagePlan {
  /// Which of the plan's models the layers belong to; "model" unless there are several
  /// (generators and a discriminator, an encoder and a decoder in different clouds).
  std::string part = "model";
  std::string cloud;
  /// Kind of device, one a replica.
  std::string device;
  /// Data-parallel copies inside the cloud.
  int replicas = 1;
  /// CPU threads of the process; 0 leaves it to libtorch.
  int threads = 1;
  /// Layers [first_layer, last_layer) of the model.
  int first_layer = 0;
  int last_layer = 0;
  /// Drop activations after the forward and compute them again before the backward.
  bool recompute = false;
  bool operator==(const StagePlan&) const = default;
};

/// What travels between two stages, and how.
struct BoundaryPlan {
  int from = 0;
  int to = 1;
  Payload payload = Payload::activations;
  /// False where nothing comes back (token ids of a generator).
  bool returns_gradient = true;
  CodecSettings forward;
  CodecSettings backward;
  /// TCP connections that carry each direction.
  int connections = 1;
  bool operator==(const BoundaryPlan&) const = default;
};

/// What the planner expected, and from which costs.
struct Prediction {
  double step_s = 0;
  double bubble = 0;
  double tokens_per_s = 0;
  /// Peak bytes of each stage.
  std::vector<double> memory_bytes;
  /// "first principles", "profile" or "calibration".
  std::string costs_source;
  /// One line: why this plan won.
  std::string reason;
  bool operator==(const Prediction&) const = default;
};

/// Everything that every process of every cloud has to know. The job's global batch is
/// micro_batch x micro_batches.
struct Plan {
  Cluster cluster;
  Model model;
  Job job;
  std::vector<StagePlan> stages;
  std::vector<BoundaryPlan> boundaries;
  /// Sequences a micro-batch.
  int micro_batch = 1;
  int micro_batches = 1;
  ScheduleSettings schedule;
  /// Codec of the shared embedding's gradient, when the model ties it.
  CodecSettings tied;
  Prediction predicted;
  bool operator==(const Plan&) const = default;

  int stage_count() const { return int(stages.size()); }
  /// True when first and last stage both hold the tied table.
  bool ties_stages() const { return model.tied_embeddings && stages.size() > 1; }
  Shape shape() const { return {stage_count(), micro_batches, 1, ties_stages()}; }
};

/// Throws InputError naming `where` and the key: stages that do not cover the layers in order,
/// boundaries that do not join neighbours, unknown clouds, devices or links, batches that do not
/// multiply to the global batch, a schedule that can't run.
void validate(const Plan& plan, const std::string& where);

Plan read_plan_file(const std::string& path);
/// Parses the text of a plan.json (a trace embeds it); `name` stands in for the file's name in
/// errors.
Plan parse_plan(std::string_view text, const std::string& name);
/// Deterministic JSON text.
std::string to_json(const Plan& plan);
void write_plan_file(const std::string& path, const Plan& plan);

/// Of everything that changes the training or the wire: not of addresses and predictions. Equal
/// hashes mean that two processes may train together.
std::uint64_t plan_hash(const Plan& plan);

/// "2 stages: north [0,4) | south [4,8), 8 micro-batches of 2, 1f1b 3/1, int8 forward, bf16
/// backward".
std::string one_line(const Plan& plan);

}  // namespace nebula
