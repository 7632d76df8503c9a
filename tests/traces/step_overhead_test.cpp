#include "traces/step_overhead.hpp"

#include "core/costs.hpp"
#include "tests/catch.hpp"
#include "tests/traces/fixture.hpp"

using namespace nebula;

namespace {

Event event_of(EventKind kind, int step, double start_s, double end_s) {
  Event event;
  event.kind = kind;
  event.step = step;
  event.start_s = start_s;
  event.end_s = end_s;
  return event;
}

Event update(int step, double start_s, double end_s) {
  Event event = event_of(EventKind::op, step, start_s, end_s);
  event.op.kind = OpKind::update;
  return event;
}

}  // namespace

TEST_CASE("what events cover is explained once, whatever overlaps") {
  const std::vector<Event> events = {
      update(0, 9, 10),
      event_of(EventKind::prepare, 1, 10, 11),   // overhead
      event_of(EventKind::op, 1, 12, 15),        // a gap of 1 before it
      event_of(EventKind::encode, 1, 13, 14),    // inside the op
      event_of(EventKind::decode, 1, 14, 16),    // half beside it
      event_of(EventKind::transfer, 1, 10, 18),  // the line's time, not the stage's
      event_of(EventKind::wait, 1, 16.5, 18),    // a gap of 0.5
      event_of(EventKind::save, 1, 18, 19),
      update(1, 19, 20),
  };
  const auto seconds = step_overhead(events, 0);
  REQUIRE(seconds);
  CHECK(*seconds == Approx(1 + 1 + 0.5));
}

TEST_CASE("only a step whose predecessor is known counts, and the stage's own events") {
  CHECK_FALSE(step_overhead({}, 0));
  CHECK_FALSE(step_overhead(std::vector{update(3, 0, 1), update(5, 4, 5)}, 0));
  Event other = event_of(EventKind::op, 4, 1, 4);
  other.stage = 1;
  const auto seconds = step_overhead(std::vector{update(3, 0, 1), other, update(4, 4, 5)}, 0);
  REQUIRE(seconds);
  CHECK(*seconds == Approx(3));
}

TEST_CASE("preparation and unexplained seconds of a whole run are found") {
  const Plan plan = test::make_plan({4, 6}, {"a", "b"});
  Costs costs = first_principles(plan.cluster, plan.model, plan.job);
  costs.devices["a"].step_overhead_s = 0.004;
  costs.devices["b"].step_overhead_s = 0.001;
  const auto events = test::run_plan(plan, costs, 6, {}, 0.002);
  CHECK(step_overhead(events, 0).value_or(0) == Approx(0.006));
  CHECK(step_overhead(events, 1).value_or(0) == Approx(0.003));
}
