#pragma once

#include "core/plan.hpp"

namespace nebula {

/// A valid plan of `stages` stages in as many clouds of one device each, joined by links in a full
/// mesh; the layers are split as evenly as they go.
inline Plan make_plan(int stages, int micro_batch, int micro_batches, int blocks = 6) {
  Plan plan;
  plan.cluster.devices.push_back({.kind = "core",
                                  .peak_flops_per_s = 1e11,
                                  .memory_bytes = 4e9,
                                  .threads = 1,
                                  .price_usd_per_hour = std::nullopt,
                                  .source = "test"});
  for (int s = 0; s < stages; ++s) {
    Cloud cloud;
    cloud.name = "c" + std::to_string(s);
    cloud.devices = {{"core", 1}};
    plan.cluster.clouds.push_back(cloud);
  }
  for (int a = 0; a < stages; ++a) {
    for (int b = 0; b < stages; ++b) {
      if (a == b) continue;
      Link link;
      link.from = "c" + std::to_string(a);
      link.to = "c" + std::to_string(b);
      link.rate_bytes_per_s = 12.5e6;
      link.latency_s = 0.015;
      link.source = "test";
      plan.cluster.links.push_back(link);
    }
  }
  Model& model = plan.model;
  model.name = "tiny";
  model.blocks = blocks;
  model.width = 32;
  model.heads = 4;
  model.kv_heads = 4;
  model.feedforward_width = 64;
  model.vocabulary = 101;
  model.max_positions = 32;
  Job& job = plan.job;
  job.name = "test";
  job.global_batch = micro_batch * micro_batches;
  job.sequence_length = 16;
  job.steps = 20;
  job.heldout_sequences = 5;
  plan.micro_batch = micro_batch;
  plan.micro_batches = micro_batches;
  for (int s = 0; s < stages; ++s) {
    StagePlan stage;
    stage.cloud = "c" + std::to_string(s);
    stage.device = "core";
    stage.first_layer = model.layer_count() * s / stages;
    stage.last_layer = model.layer_count() * (s + 1) / stages;
    plan.stages.push_back(stage);
    if (s > 0) plan.boundaries.push_back({s - 1, s, Payload::activations, true, {}, {}, 1});
  }
  plan.schedule = one_f_one_b(plan.shape());
  return plan;
}

}  // namespace nebula
