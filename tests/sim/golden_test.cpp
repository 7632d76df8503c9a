#include <cmath>
#include <cstdio>

#include "core/node.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/core/plan_fixture.hpp"

using namespace nebula;

// Predictions for a handful of fixed plans. A change of the model shows as a difference to
// golden/predictions.txt; review it, then put the file that this test writes in its place.
namespace {

// Round figures, so that a prediction can be followed by hand.
Costs fixed_costs() {
  LayerCosts layer;
  layer.forward_s = {{1}, {0.010}};
  layer.backward_s = {{1}, {0.020}};
  layer.saved_bytes = {{1}, {1e6}};
  layer.update_s = 0.005;
  DeviceCosts device;
  for (const char* kind : {"embedding", "block", "head"}) device.layers[kind] = layer;
  device.codecs["float32"] = {1e-4, 1e-9, 1e-9};
  device.codecs["bf16"] = {1e-4, 2e-9, 2e-9};
  device.codecs["int8"] = {1e-4, 4e-9, 4e-9};
  device.op_overhead_s = 0.001;
  device.step_overhead_s = 0.002;
  Costs costs;
  costs.source = "profile";
  costs.model = "tiny";
  costs.sequence_length = 16;
  costs.devices["core"] = device;
  return costs;
}

// A wider boundary than the fixture's, so that lines matter.
Plan wide_plan(int stages, int micro_batch, int micro_batches) {
  Plan plan = make_plan(stages, micro_batch, micro_batches);
  plan.model.width = 2048;
  plan.model.heads = plan.model.kv_heads = 8;
  return plan;
}

std::vector<std::pair<std::string, Plan>> plans() {
  std::vector<std::pair<std::string, Plan>> result;
  result.emplace_back("one stage", wide_plan(1, 2, 4));
  result.emplace_back("two stages, plain 1f1b", wide_plan(2, 2, 8));
  Plan deep = wide_plan(2, 2, 8);
  deep.schedule = one_f_one_b(deep.shape(), 3);
  result.emplace_back("two stages, deep 1f1b", deep);
  Plan pipe = wide_plan(4, 1, 16);
  pipe.schedule = gpipe();
  result.emplace_back("four stages, gpipe", pipe);
  Plan coded = wide_plan(4, 1, 16);
  for (BoundaryPlan& boundary : coded.boundaries) {
    boundary.forward.name = "int8";
    boundary.backward.name = "bf16";
  }
  result.emplace_back("four stages, int8 and bf16", coded);
  Plan tied = wide_plan(3, 4, 4);
  tied.model.tied_embeddings = true;
  tied.tied.name = "bf16";
  result.emplace_back("three stages, tied", tied);
  Plan narrow = wide_plan(2, 2, 8);
  for (Link& link : narrow.cluster.links) link.window_bytes = 1e5;
  narrow.boundaries[0].connections = 3;
  result.emplace_back("two stages, three narrow connections", narrow);
  Plan back_and_forth = wide_plan(3, 2, 8);
  back_and_forth.cluster.clouds[0].devices[0].count = 2;
  back_and_forth.stages[2].cloud = "c0";
  result.emplace_back("three stages, first and last in one cloud", back_and_forth);
  return result;
}

std::string predictions() {
  std::string text;
  for (const auto& [name, plan] : plans()) {
    const PlanSimulation result = simulate_plan(plan, plan.cluster, fixed_costs());
    char line[200];
    std::snprintf(line, sizeof line, "%s: step %.8g s, bubble %.6f", name.c_str(),
                  result.simulation.step_s, result.summary.bubble);
    text += line;
    for (const LinkSummary& link : result.summary.links) {
      std::snprintf(line, sizeof line, ", %s %.0f bytes, use %.6f", link.name.c_str(), link.bytes,
                    link.use);
      text += line;
    }
    text += '\n';
  }
  return text;
}

}  // namespace

TEST_CASE("predictions are what they were") {
  const std::string now = predictions();
  const std::string golden = read_file(NEBULA_SOURCE_DIR "/tests/sim/golden/predictions.txt");
  const std::string written = NEBULA_BIN_DIR "/../predictions.txt";
  if (now != golden) write_file(written, now);
  INFO("the predictions now are in " << written);
  CHECK(now == golden);
}

TEST_CASE("a plan's simulation agrees with its summary") {
  for (const auto& [name, plan] : plans()) {
    CAPTURE(name);
    const PlanSimulation result = simulate_plan(plan, plan.cluster, fixed_costs());
    CHECK(result.summary.step_s == Approx(result.simulation.step_s));
    for (const StageSummary& stage : result.summary.stages) CHECK(std::abs(stage.other_s) < 1e-9);
  }
}
