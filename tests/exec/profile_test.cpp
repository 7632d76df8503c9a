#include "exec/profile.hpp"

#include "tests/catch.hpp"
#include "tests/core/plan_fixture.hpp"

using namespace nebula;

namespace {

std::vector<double> profiled_sizes(double memory_bytes) {
  Plan plan = make_plan(1, 1, 1);
  plan.job.global_batch = 32;
  plan.cluster.devices.front().memory_bytes = memory_bytes;
  plan.cluster.devices.front().threads = 1;
  ProfileOptions options;
  options.device = plan.cluster.devices.front().kind;
  options.repetitions = 1;
  const Costs costs =
      profile(plan.cluster, plan.model, plan.job, options, [](const std::string&) {});
  const LayerCosts& block = costs.devices.at(options.device).layers.at("block");
  CHECK(block.backward_s.sequences == block.forward_s.sequences);
  CHECK(block.saved_bytes.sequences == block.forward_s.sequences);
  return block.forward_s.sequences;
}

}  // namespace

TEST_CASE("profile measures the micro-batches that fit into the device's memory") {
  CHECK(profiled_sizes(4e9) == std::vector<double>{1, 2, 4, 8, 16, 32});
  // Two sizes are the least that a curve needs.
  CHECK(profiled_sizes(1) == std::vector<double>{1, 2});
}
