#include "core/summary.hpp"

#include "core/error.hpp"
#include "tests/catch.hpp"
#include "tests/core/plan_fixture.hpp"

using namespace nebula;

namespace {

Event op(int step, int stage, OpKind kind, int micro_batch, double start_s, double end_s) {
  Event event{.kind = EventKind::op, .step = step, .stage = stage};
  event.op = {kind, micro_batch, 0};
  event.start_s = start_s;
  event.end_s = end_s;
  return event;
}

Event wait(int step, int stage, MessageKind message, double start_s, double end_s) {
  Event event{.kind = EventKind::wait, .step = step, .stage = stage};
  event.message = message;
  event.start_s = start_s;
  event.end_s = end_s;
  return event;
}

// Two stages, one micro-batch; a step of 10 s that starts at 10 * step.
std::vector<Event> steps(int count) {
  std::vector<Event> events;
  for (int k = 0; k < count; ++k) {
    const double t = 10.0 * k;
    events.push_back(op(k, 0, OpKind::forward, 0, t, t + 1));
    events.push_back(wait(k, 0, MessageKind::gradient, t + 1, t + 6));
    events.push_back(op(k, 0, OpKind::backward, 0, t + 6, t + 8));
    events.push_back(op(k, 0, OpKind::update, 0, t + 8, t + 9.5));
    events.push_back(wait(k, 1, MessageKind::activation, t, t + 2));
    events.push_back(op(k, 1, OpKind::forward, 0, t + 2, t + 3));
    events.push_back(op(k, 1, OpKind::backward, 0, t + 3, t + 5));
    events.push_back(wait(k, 1, MessageKind::norm_total, t + 5, t + 9));
    events.push_back(op(k, 1, OpKind::update, 0, t + 9, t + 9.5));
    Event transfer{.kind = EventKind::transfer, .step = k, .stage = 1, .peer = 0};
    transfer.bytes = 1000;
    events.push_back(transfer);
  }
  return events;
}

}  // namespace

TEST_CASE("the parts of every stage's step add up to the step") {
  const Plan plan = make_plan(2, 2, 1);
  const StepSummary summary = summarize(plan, steps(4));
  CHECK(summary.steps == 3);
  CHECK(summary.step_s == Approx(10));
  const StageSummary& first = summary.stages[0];
  CHECK(first.forward_s == Approx(1));
  CHECK(first.wait_gradient_s == Approx(5));
  CHECK(first.update_s == Approx(1.5));
  CHECK(first.other_s == Approx(0.5));
  const StageSummary& second = summary.stages[1];
  CHECK(second.warm_up_s == Approx(2));
  CHECK(second.wait_activation_s == 0);
  CHECK(second.drain_s == Approx(4));
  for (const StageSummary& stage : summary.stages) {
    CHECK(stage.busy_s() + stage.idle_s() == Approx(10));
  }
  // Busy 4.5 and 3.5 of 10.
  CHECK(summary.bubble == Approx(1 - 8.0 / 20));
  REQUIRE(summary.links.size() == 1);
  CHECK(summary.links[0].name == "c0->c1");
  CHECK(summary.links[0].bytes == Approx(1000));
  CHECK(summary.links[0].use == Approx(1000 / (12.5e6 * 10)));
}

TEST_CASE("a step stretched by a checkpoint is left out") {
  const Plan plan = make_plan(2, 2, 1);
  auto events = steps(4);
  events.push_back({.kind = EventKind::save, .step = 2});
  CHECK(summarize(plan, events).steps == 2);
}

TEST_CASE("a timeline without a complete step is an error, not a zero") {
  const Plan plan = make_plan(2, 2, 1);
  CHECK_THROWS_AS(summarize(plan, steps(1)), InputError);
  CHECK_THROWS_AS(summarize(plan, {}), InputError);
}
