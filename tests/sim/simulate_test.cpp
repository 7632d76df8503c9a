#include "sim/simulate.hpp"

#include <cmath>
#include <map>
#include <tuple>

#include "core/error.hpp"
#include "tests/catch.hpp"
#include "tests/sim/case_fixture.hpp"
#include "tests/sim/recurrence.hpp"

using namespace nebula;
using namespace nebula::test;

namespace {

struct RandomCase {
  ScheduleSettings schedule;
  SimulationCase work;
};

RandomCase random_case(Dice& dice, bool shared) {
  RandomCase result;
  const int stages = dice.whole(1, 6);
  const int micro_batches = dice.whole(1, 12);
  result.work.costs = random_costs(dice, stages, micro_batches, shared);
  result.schedule = random_schedule(dice, result.work.costs.shape);
  result.work.lists = make_schedule(result.schedule, result.work.costs.shape);
  result.work.options.steps = dice.whole(1, 3);
  return result;
}

std::vector<SimulationCase> only_work(const std::vector<RandomCase>& cases) {
  std::vector<SimulationCase> work;
  for (const RandomCase& one : cases) work.push_back(one.work);
  return work;
}

std::vector<RandomCase> random_cases(std::uint64_t seed, int count, bool shared) {
  Dice dice(seed);
  std::vector<RandomCase> cases;
  for (int i = 0; i < count; ++i) cases.push_back(random_case(dice, shared));
  return cases;
}

// What a stage does itself between two updates of the first stage. The last stage decodes the
// first one's share of the tied table at a time of its own, so that may fall to either side.
double stage_work(const SimulationCase& work, int stage) {
  const StepCosts& costs = work.costs;
  double seconds = costs.stages[std::size_t(stage)].prepare_s;
  for (const Op& op : work.lists[std::size_t(stage)]) {
    seconds += costs.op_seconds(stage, op.kind);
    for (const auto& message : needs(costs.shape, stage, op)) {
      if (message.kind == MessageKind::tied_gradient && stage > 0) continue;
      seconds += costs.channel(message).decode_s;
    }
    for (const auto& message : emits(costs.shape, stage, op)) {
      seconds += costs.channel(message).encode_s;
    }
  }
  return seconds;
}

}  // namespace

TEST_CASE("without shared lines a simulation equals the recurrence") {
  const auto cases = random_cases(1, 1000, false);
  const auto simulations = simulate_many(only_work(cases));
  double worst = 0;
  for (std::size_t c = 0; c < cases.size(); ++c) {
    const auto& [schedule, work] = cases[c];
    const auto expected = recurrence(work.costs, schedule, work.options.steps);
    std::map<std::tuple<int, int, Op>, double> ends;
    for (const Event& event : simulations[c].events) {
      if (event.kind == EventKind::op) ends[{event.step, event.stage, event.op}] = event.end_s;
    }
    REQUIRE(ends.size() == expected.size());
    double span = 0;
    double before = 0;
    double end = 0;
    for (const OpEnd& item : expected) {
      span = std::max(span, item.end_s);
      if (item.stage != 0 || item.op.kind != OpKind::update) continue;
      if (item.step == work.options.steps - 2) before = item.end_s;
      if (item.step == work.options.steps - 1) end = item.end_s;
    }
    for (const OpEnd& item : expected) {
      const double error = std::abs(ends.at({item.step, item.stage, item.op}) - item.end_s);
      worst = std::max(worst, error / span);
    }
    if (work.options.steps > 1) {
      worst = std::max(worst, std::abs(simulations[c].step_s - (end - before)) / span);
    } else {
      worst = std::max(worst, std::abs(simulations[c].step_s - span) / span);
    }
  }
  CAPTURE(worst);
  CHECK(worst < 1e-9);
}

TEST_CASE("the same case gives the same bits, whatever ran before and on how many workers") {
  auto cases = only_work(random_cases(2, 300, true));
  const auto first = simulate_many(cases, 1);
  CHECK(simulate_many(cases, 3) == first);
  std::reverse(cases.begin(), cases.end());
  auto reversed = simulate_many(cases, 2);
  std::reverse(reversed.begin(), reversed.end());
  CHECK(reversed == first);
  for (std::size_t i : {0U, 150U, 299U}) {
    const SimulationCase& work = cases[cases.size() - 1 - i];
    CHECK(simulate(work.costs, work.lists, work.options) == first[i]);
    SimulationOptions brief = work.options;
    brief.want_events = false;
    const Simulation light = simulate(work.costs, work.lists, brief);
    CHECK(light.step_s == first[i].step_s);
    CHECK(light.events.empty());
  }
}

TEST_CASE("a steady step is never below any stage's work or any line's bytes") {
  const auto cases = only_work(random_cases(3, 300, true));
  const auto simulations = simulate_many(cases);
  for (std::size_t c = 0; c < cases.size(); ++c) {
    const SimulationCase& work = cases[c];
    if (work.options.steps < 2) continue;
    CAPTURE(c);
    for (int s = 0; s < work.costs.shape.stages; ++s) {
      CHECK(simulations[c].step_s >= stage_work(work, s) * (1 - 1e-9));
    }
    if (work.costs.shape.stages < 2) continue;
    std::map<int, double> bytes;
    for (int b = 0; b + 1 < work.costs.shape.stages; ++b) {
      for (const auto* channels : {&work.costs.forward, &work.costs.backward}) {
        const ChannelCosts& channel = (*channels)[std::size_t(b)];
        bytes[channel.line] += channel.bytes * work.costs.shape.micro_batches;
      }
    }
    for (const auto& [line, amount] : bytes) {
      if (line < 0) continue;
      const double rate = work.costs.lines[std::size_t(line)].rate_bytes_per_s;
      CHECK(simulations[c].step_s >= amount / rate * (1 - 1e-9));
    }
  }
}

TEST_CASE("a stage's events tile its time, and a line carries what was sent") {
  const auto cases = only_work(random_cases(4, 200, true));
  const auto simulations = simulate_many(cases);
  for (std::size_t c = 0; c < cases.size(); ++c) {
    CAPTURE(c);
    const StepCosts& costs = cases[c].costs;
    std::vector<double> at(std::size_t(costs.shape.stages), 0);
    std::map<std::pair<int, int>, double> bytes;
    const double span = makespan(simulations[c]);
    bool tiled = true;
    for (const Event& event : simulations[c].events) {
      if (event.kind == EventKind::transfer) {
        bytes[{event.peer, event.stage}] += event.bytes;
        continue;
      }
      double& now = at[std::size_t(event.stage)];
      tiled = tiled && std::abs(event.start_s - now) <= 1e-9 * span && event.end_s >= event.start_s;
      now = event.end_s;
    }
    CHECK(tiled);
    std::map<std::pair<int, int>, double> sent;
    for (int s = 0; s < costs.shape.stages; ++s) {
      for (const Op& op : cases[c].lists[std::size_t(s)]) {
        for (const Message& message : emits(costs.shape, s, op)) {
          sent[{message.from, message.to}] += costs.channel(message).bytes * cases[c].options.steps;
        }
      }
    }
    REQUIRE(bytes.size() == sent.size());
    for (const auto& [pair, amount] : sent) CHECK(bytes[pair] == Approx(amount).epsilon(1e-12));
  }
}

TEST_CASE("connections of several boundaries share a line in equal parts") {
  // By hand: stage 0 sends at 1 and 3, stage 1 its first message at 4, while half of stage 0's
  // second message is still to go.
  StepCosts costs = plain_costs(3, 2, 1, 0);
  for (ChannelCosts& channel : costs.forward) {
    channel.bytes = 1;
    channel.line = 0;
  }
  costs.lines[0].rate_bytes_per_s = 0.5;
  const OpLists lists = forward_only(costs.shape);
  const auto end_of = [](const Simulation& simulation, int stage, int micro_batch) {
    for (const Event& event : simulation.events) {
      if (event.kind == EventKind::op && event.stage == stage && event.micro_batch == micro_batch) {
        return event.end_s;
      }
    }
    return -1.0;
  };

  const Simulation even = simulate(costs, lists, {.steps = 1});
  CHECK(end_of(even, 1, 1) == Approx(7));
  CHECK(end_of(even, 2, 0) == Approx(8));
  CHECK(end_of(even, 2, 1) == Approx(10));

  costs.forward[0].connections = 3;
  const Simulation uneven = simulate(costs, lists, {.steps = 1});
  CHECK(end_of(uneven, 1, 1) == Approx(4 + 4.0 / 3 + 1));
  CHECK(end_of(uneven, 2, 0) == Approx(8));
  CHECK(end_of(uneven, 2, 1) == Approx(10));
}

TEST_CASE("a connection carries no more than its window allows") {
  StepCosts costs = plain_costs(2, 1, 1, 0);
  costs.forward[0].bytes = 1e6;
  costs.forward[0].latency_s = 0.5;
  costs.forward[0].connection_bytes_per_s = 1e5;
  const OpLists lists = forward_only(costs.shape);
  CHECK(simulate(costs, lists, {.steps = 1}).step_s == Approx(1 + 10 + 0.5 + 1));
  costs.forward[0].connections = 4;
  CHECK(simulate(costs, lists, {.steps = 1}).step_s == Approx(1 + 2.5 + 0.5 + 1));
  costs.forward[0].connections = 40;
  CHECK(simulate(costs, lists, {.steps = 1}).step_s == Approx(1 + 1 + 0.5 + 1));
}

TEST_CASE("lists that wait for each other for ever are an error that says who waits") {
  StepCosts costs = plain_costs(2, 1, 1, 1);
  const OpLists lists = {{{OpKind::backward, 0, 0}, {OpKind::forward, 0, 0}},
                         {{OpKind::forward, 0, 0}, {OpKind::backward, 0, 0}}};
  try {
    simulate(costs, lists);
    FAIL("simulated a deadlock");
  } catch (const RunError& error) {
    const std::string text = error.what();
    CHECK(text.find("stage 0 waits for gradient 0 from stage 1") != std::string::npos);
    CHECK(text.find("stage 1 waits for activation 0 from stage 0") != std::string::npos);
  }
  // One failure spoils no other case of the batch.
  const SimulationCase good{costs, make_schedule(gpipe(), costs.shape), {}};
  const std::vector<SimulationCase> mixed = {good, {costs, lists, {}}, good};
  CHECK_THROWS_AS(simulate_many(mixed), RunError);
  CHECK(simulate(costs, good.lists).step_s == Approx(4));
}
