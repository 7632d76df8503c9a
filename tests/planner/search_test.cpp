#include "planner/search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>

#include "core/error.hpp"
#include "core/memory.hpp"
#include "planner/bounds.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/core/plan_fixture.hpp"

using namespace nebula;

namespace {

struct Problem {
  Cluster cluster;
  Model model;
  Job job;
  Costs costs;
};

// Two or three clouds, unlike devices, lines from fast to hopeless, two blocks.
Problem random_problem(std::mt19937_64& random) {
  const auto between = [&](double least, double most) {
    return least * std::pow(most / least, std::uniform_real_distribution<>(0, 1)(random));
  };
  const int clouds = random() % 4 == 0 ? 3 : 2;
  Plan plan = make_plan(clouds, 1, 4, 2);
  Problem problem{plan.cluster, plan.model, plan.job, {}};
  Device other = problem.cluster.devices[0];
  other.kind = "slow";
  other.peak_flops_per_s *= between(0.2, 1);
  problem.cluster.devices.push_back(other);
  problem.cluster.clouds.back().devices = {{"slow", 1}};
  for (Link& link : problem.cluster.links) {
    link.rate_bytes_per_s = between(1e5, 1e9);
    link.latency_s = between(1e-5, 0.05);
  }
  problem.job.global_batch = 4;
  problem.job.activation_codecs = {{"float32", 64}, {"int8", 64}};
  problem.job.gradient_codecs = {{"float32", 64}};
  problem.costs = first_principles(problem.cluster, problem.model, problem.job);
  for (auto& [kind, device] : problem.costs.devices) {
    device.op_overhead_s = between(1e-6, 1e-3);
    device.step_overhead_s = between(1e-6, 1e-3);
  }
  return problem;
}

// All candidates with their simulated step time.
std::vector<Ranked> simulate_all(const Problem& problem, std::vector<double>* bounds) {
  const Space space(problem.cluster, problem.model, problem.job, problem.costs, {});
  std::vector<Ranked> all;
  std::vector<SimulationCase> cases;
  for (const Candidate& candidate : space.candidates()) {
    const Plan plan = space.plan(candidate);
    validate(plan, "candidate");
    const StepCosts costs = step_costs(plan, plan.cluster, problem.costs);
    const OpLists lists = make_schedule(plan.schedule, plan.shape());
    bounds->push_back(step_lower_bound(costs, plan.schedule));
    cases.push_back({costs, lists, {.steps = 2, .want_events = false}});
    all.push_back({plan, 0});
  }
  const auto results = simulate_many(cases);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].step_s = results[i].step_s;
  return all;
}

}  // namespace

TEST_CASE("the search's answer is that of simulating everything") {
  std::mt19937_64 random(5);
  std::size_t pruned = 0;
  for (int i = 0; i < 50; ++i) {
    const Problem problem = random_problem(random);
    std::vector<double> bounds;
    const std::vector<Ranked> all = simulate_all(problem, &bounds);
    double best = std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < all.size(); ++k) {
      CAPTURE(i, one_line(all[k].plan));
      CHECK(bounds[k] <= all[k].step_s);
      best = std::min(best, all[k].step_s);
    }
    std::optional<Ranked> chosen;
    for (const Ranked& ranked : all) {
      if (ranked.step_s > best * (1 + equally_fast)) continue;
      if (!chosen || preferred(ranked, *chosen, problem.costs)) chosen = ranked;
    }
    const SearchResult result =
        search(problem.cluster, problem.model, problem.job, problem.costs, {});
    CAPTURE(i);
    CHECK(one_line(result.best.front().plan) == one_line(chosen->plan));
    CHECK(result.best.front().step_s == chosen->step_s);
    pruned += result.candidates - result.simulated;
  }
  // Otherwise the test would not test the pruning.
  CHECK(pruned > 1000);
}

TEST_CASE("the answer does not depend on the number of workers") {
  std::mt19937_64 random(6);
  for (int i = 0; i < 5; ++i) {
    const Problem problem = random_problem(random);
    const auto run = [&](int workers) {
      return search(problem.cluster, problem.model, problem.job, problem.costs, {}, workers);
    };
    const SearchResult one = run(1);
    const SearchResult three = run(3);
    CHECK(one.simulated == three.simulated);
    REQUIRE(one.best.size() == three.best.size());
    for (std::size_t k = 0; k < one.best.size(); ++k) {
      CHECK(one.best[k].plan == three.best[k].plan);
      CHECK(one.best[k].step_s == three.best[k].step_s);
    }
  }
}

TEST_CASE("what does not fit names the stage and what it lacks") {
  std::mt19937_64 random(7);
  Problem problem = random_problem(random);
  for (Device& device : problem.cluster.devices) device.memory_bytes = 1000;
  try {
    search(problem.cluster, problem.model, problem.job, problem.costs, {});
    FAIL("found a plan");
  } catch (const RunError& error) {
    CHECK(std::string(error.what()).find("lacks") != std::string::npos);
    CHECK(std::string(error.what()).find("stage") != std::string::npos);
  }
}

TEST_CASE("a plan over the memory of a device is never chosen") {
  std::mt19937_64 random(8);
  Problem problem = random_problem(random);
  const SearchResult free = search(problem.cluster, problem.model, problem.job, problem.costs, {});
  const auto& memory = free.best.front().plan.predicted.memory_bytes;
  const double peak = *std::max_element(memory.begin(), memory.end());
  for (Device& device : problem.cluster.devices) device.memory_bytes = peak - 1;
  const SearchResult tight = search(problem.cluster, problem.model, problem.job, problem.costs, {});
  CHECK(tight.too_large > 0);
  for (const Ranked& ranked : tight.best) {
    for (const double bytes : ranked.plan.predicted.memory_bytes) CHECK(bytes < peak);
  }
}

TEST_CASE("the prediction in the plan is the simulator's") {
  std::mt19937_64 random(9);
  const Problem problem = random_problem(random);
  const SearchResult result =
      search(problem.cluster, problem.model, problem.job, problem.costs, {});
  const Plan& plan = result.best.front().plan;
  const PlanSimulation simulation = simulate_plan(plan, plan.cluster, problem.costs);
  CHECK(plan.predicted.step_s == simulation.simulation.step_s);
  CHECK(plan.predicted.step_s == Approx(simulation.summary.step_s).epsilon(1e-12));
  CHECK(plan.predicted.bubble == simulation.summary.bubble);
  CHECK(!plan.predicted.reason.empty());
}
