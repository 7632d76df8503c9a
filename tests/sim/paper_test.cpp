#include "core/schedules.hpp"
#include "sim/simulate.hpp"
#include "tests/catch.hpp"
#include "tests/sim/case_fixture.hpp"

using namespace nebula;
using namespace nebula::test;

namespace {

SimulationCase one_step(const StepCosts& costs, const ScheduleSettings& schedule) {
  return {costs, make_schedule(schedule, costs.shape), {.steps = 1}};
}

// Idle share of all stages until the last one is through.
double bubble(const SimulationCase& work, double span) {
  const StageCosts& stage = work.costs.stages.front();
  return 1 - work.costs.shape.micro_batches * (stage.forward_s + stage.backward_s) / span;
}

}  // namespace

TEST_CASE("formula (1) is exact where transfers take no time") {
  Dice dice(11);
  for (int i = 0; i < 60; ++i) {
    const int p = dice.whole(1, 8);
    const int m = dice.whole(1, 20);
    const StepCosts costs = plain_costs(p, m, dice.real(0.1, 2), dice.real(0.1, 2));
    const auto schedule = dice.chance(0.5) ? gpipe() : one_f_one_b(costs.shape, dice.whole(0, 3));
    const SimulationCase work = one_step(costs, schedule);
    CAPTURE(p, m);
    CHECK(bubble(work, simulate(work.costs, work.lists, work.options).step_s) ==
          Approx(paper_bubble(p, m)).margin(1e-9));
  }
}

// Why it holds: the longest path through the ops is (m + p - 1)(tf + tb) long when transfers take
// no time, for GPipe and for 1F1B of at least the plain depth; each of the 2 m (p - 1) messages
// stands on a path at most once and adds at most its transfer time tt. That sum is the formula's
// step. It needs equal stages and lines that no other boundary uses.
TEST_CASE("formula (2) is an upper bound for equal stages on lines of their own") {
  Dice dice(12);
  std::vector<SimulationCase> cases;
  std::vector<double> bounds;
  for (int i = 0; i < 300; ++i) {
    const int p = dice.whole(2, 6);
    const int m = dice.whole(1, 16);
    const double tf = dice.real(0.1, 2);
    const double tb = dice.real(0.1, 2);
    const double occupancy = dice.seconds(1e-3, 3);
    const double latency = dice.seconds(1e-3, 3);
    const StepCosts costs = plain_costs(p, m, tf, tb, occupancy, latency);
    const auto schedule = dice.chance(0.3) ? gpipe() : one_f_one_b(costs.shape, dice.whole(0, 4));
    cases.push_back(one_step(costs, schedule));
    bounds.push_back(paper_bubble(p, m, tf, tb, occupancy + latency));
  }
  const auto simulations = simulate_many(cases);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    CHECK(bubble(cases[i], simulations[i].step_s) <= bounds[i] + 1e-9);
  }
  // It is exact for one micro-batch.
  const SimulationCase single = one_step(plain_costs(4, 1, 1, 2, 0.5, 0.25), gpipe());
  CHECK(bubble(single, simulate(single.costs, single.lists, single.options).step_s) ==
        Approx(paper_bubble(4, 1, 1, 2, 0.75)));
}

TEST_CASE("GPipe over full-duplex lines has the closed form") {
  Dice dice(13);
  for (int i = 0; i < 40; ++i) {
    const int p = dice.whole(1, 6);
    const int m = dice.whole(1, 16);
    const double tf = dice.real(0.1, 2);
    const double tb = dice.real(0.1, 2);
    const double occupancy = dice.real(0, 3);
    const double latency = dice.real(0, 3);
    const SimulationCase work = one_step(plain_costs(p, m, tf, tb, occupancy, latency), gpipe());
    const double f = p > 1 ? std::max(tf, occupancy) : tf;
    const double b = p > 1 ? std::max(tb, occupancy) : tb;
    const double expected =
        p * (tf + tb) + (p - 1) * (2 * occupancy + 2 * latency) + (m - 1) * (f + b);
    CHECK(simulate(work.costs, work.lists, work.options).step_s == Approx(expected));
  }
}

// Known figures for p = 4, m = 32, F = 1, B = 2, occupancy 0.2, propagation 2.
TEST_CASE("deeper 1F1B hides latency") {
  const StepCosts costs = plain_costs(4, 32, 1, 2, 0.2, 2);
  const auto seconds = [&](const ScheduleSettings& schedule) {
    const SimulationCase work = one_step(costs, schedule);
    return simulate(work.costs, work.lists, work.options).step_s;
  };
  CHECK(seconds(one_f_one_b(costs.shape)) == Approx(219).margin(0.5));
  CHECK(seconds(gpipe()) == Approx(118).margin(0.5));
  CHECK(seconds(one_f_one_b(costs.shape, 2)) < 130);
}
