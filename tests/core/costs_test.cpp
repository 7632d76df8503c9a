#include "core/costs.hpp"

#include "core/error.hpp"
#include "core/memory.hpp"
#include "core/step_costs.hpp"
#include "tests/catch.hpp"
#include "tests/core/plan_fixture.hpp"

using namespace nebula;

TEST_CASE("a curve goes straight between its points and beyond them") {
  const Curve one{{4}, {8}};
  CHECK(one.at(2) == Approx(4));
  const Curve three{{1, 2, 4}, {10, 12, 20}};
  CHECK(three.at(1) == Approx(10));
  CHECK(three.at(3) == Approx(16));
  CHECK(three.at(8) == Approx(36));
  CHECK(three.at(0.5) == Approx(9));
  CHECK(three.scaled(2).at(3) == Approx(32));
}

TEST_CASE("a costs file reads back what was written") {
  const Plan plan = make_plan(2, 2, 4);
  Costs costs = first_principles(plan.cluster, plan.model, plan.job);
  costs.links["c0->c1"] = {1e7, 0.02, 1e6, "traces"};
  costs.residuals = {{"step", 1.0, 1.1}};
  costs.devices["core"].step_overhead_s = 0.003;
  write_file("costs-test.json", to_json(costs));
  CHECK(read_costs_file("costs-test.json") == costs);
  std::remove("costs-test.json");
}

TEST_CASE("a stage costs what its layers cost") {
  const Plan plan = make_plan(2, 2, 4);
  Costs costs = first_principles(plan.cluster, plan.model, plan.job);
  costs.devices["core"].op_overhead_s = 0.5;
  const auto& layers = costs.devices["core"].layers;
  const StepCosts step = step_costs(plan, plan.cluster, costs);
  const double block = layers.at("block").forward_s.at(2);
  CHECK(step.stages[0].forward_s ==
        Approx(0.5 + layers.at("embedding").forward_s.at(2) + 3 * block));
  CHECK(step.stages[1].forward_s == Approx(0.5 + 3 * block + layers.at("head").forward_s.at(2)));
  // float32 activations of 2 sequences of 16 tokens, 32 wide.
  CHECK(step.forward[0].bytes == double(framed_bytes(4 * 2 * 16 * 32)));
  CHECK(step.lines.size() == 2);
  CHECK(step.norm_backward[0].line == step.backward[0].line);
}

TEST_CASE("a measured link replaces the assumed one, but not in a what-if about it") {
  const Plan plan = make_plan(2, 2, 4);
  Costs costs = first_principles(plan.cluster, plan.model, plan.job);
  costs.links["c0->c1"] = {7e6, 0.02, 0, "traces"};
  CHECK(step_costs(plan, plan.cluster, costs).lines[0].rate_bytes_per_s == 7e6);
  Cluster faster = plan.cluster;
  faster.links[0].rate_bytes_per_s = 99e6;
  CHECK(step_costs(plan, faster, costs).lines[0].rate_bytes_per_s == 99e6);
}

TEST_CASE("a connection is limited by its window over the round trip") {
  Plan plan = make_plan(2, 2, 4);
  plan.cluster.links[0].window_bytes = 3e6;
  const Costs costs = first_principles(plan.cluster, plan.model, plan.job);
  CHECK(step_costs(plan, plan.cluster, costs).forward[0].connection_bytes_per_s == Approx(1e8));
}

TEST_CASE("the paper's bubble ratios") {
  CHECK(paper_bubble(4, 9) == Approx(3.0 / 12));
  // p = 2 with transfers as long as the work: (3 + 2 m) / (3 m + 3 + 2 m).
  CHECK(paper_bubble(2, 10, 1, 2, 1) == Approx(23.0 / 53));
  CHECK(paper_bubble(4, 8, 1, 2, 0) == Approx(paper_bubble(4, 8)));
}

TEST_CASE("costs of another model, length or precision are refused") {
  const Plan plan = make_plan(2, 2, 4);
  const Costs costs = first_principles(plan.cluster, plan.model, plan.job);
  CHECK_NOTHROW(check_costs(costs, plan.cluster, plan.model, plan.job, "c.json"));
  Model model = plan.model;
  model.name = "other";
  CHECK_THROWS_AS(check_costs(costs, plan.cluster, model, plan.job, "c.json"), InputError);
  Job job = plan.job;
  job.sequence_length = 8;
  CHECK_THROWS_AS(check_costs(costs, plan.cluster, plan.model, job, "c.json"), InputError);
  job = plan.job;
  job.precision = Precision::bf16;
  CHECK_THROWS_AS(check_costs(costs, plan.cluster, plan.model, job, "c.json"), InputError);
}

TEST_CASE("memory grows with the micro-batches in flight, not beyond what recomputing keeps") {
  Plan plan = make_plan(2, 2, 4);
  const Costs costs = first_principles(plan.cluster, plan.model, plan.job);
  const auto plain = plan_memory(plan, costs);
  CHECK(plain[0].state_bytes == 16.0 * double(stage_parameters(plan.model, 0, 4)));
  CHECK(plain[0].activation_bytes == Approx(2 * plain[1].activation_bytes).epsilon(1));
  plan.schedule = gpipe();
  CHECK(plan_memory(plan, costs)[0].activation_bytes == Approx(2 * plain[0].activation_bytes));
  plan.stages[0].recompute = true;
  CHECK(plan_memory(plan, costs)[0].activation_bytes < 2 * plain[0].activation_bytes);
}
