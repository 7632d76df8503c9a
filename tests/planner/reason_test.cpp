#include "planner/reason.hpp"

#include "tests/catch.hpp"
#include "tests/core/plan_fixture.hpp"

using namespace nebula;

TEST_CASE("a reason says what each choice is worth") {
  Plan plan = make_plan(2, 2, 4);
  plan.boundaries[0].forward.name = "int8";
  plan.schedule.in_flight = {4, 1};
  Alternatives without;
  without.one_stage = 1.8;
  without.float32 = 1.31;
  without.plain_depth = 1.1;
  without.one_micro_batch = 1.001;
  CHECK(reason(plan, 1.0, without) ==
        "2 stages: one alone 1.8 times as long; 4 micro-batches: one no slower; int8/float32: "
        "float32 31 % slower; 4 in flight: plain 1F1B 10 % slower");
  CHECK(reason(make_plan(1, 8, 1), 1.0, {}) == "one stage: no split over the clouds is faster");
}
