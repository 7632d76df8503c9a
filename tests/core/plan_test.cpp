#include "core/plan.hpp"

#include "core/error.hpp"
#include "tests/catch.hpp"
#include "tests/core/plan_fixture.hpp"

using namespace nebula;

TEST_CASE("a plan reads back what was written") {
  for (const int stages : {1, 2, 4}) {
    Plan plan = make_plan(stages, 2, 4);
    plan.predicted = {1.5, 0.25, 1000, {1e6}, "profile", "because"};
    plan.job.activation_codecs = {{"int8", 32}, {"bf16", 64}};
    const Plan again = parse_plan(to_json(plan), "plan.json");
    CHECK(again == plan);
    CHECK(to_json(again) == to_json(plan));
  }
}

TEST_CASE("the hash is of what must agree, not of addresses and predictions") {
  const Plan plan = make_plan(2, 2, 4);
  Plan other = plan;
  other.cluster.clouds[0].host = "203.0.113.7";
  other.predicted.step_s = 9;
  CHECK(plan_hash(other) == plan_hash(plan));
  other.boundaries[0].forward.name = "int8";
  CHECK(plan_hash(other) != plan_hash(plan));
  other = plan;
  other.job.seed = 2;
  CHECK(plan_hash(other) != plan_hash(plan));
}

TEST_CASE("one line tells a plan") {
  Plan plan = make_plan(2, 2, 4);
  plan.boundaries[0].forward.name = "int8";
  CHECK(one_line(plan) ==
        "2 stages: c0 [0,4) | c1 [4,8), 4 micro-batches of 2, 1f1b 2/1, int8 forward, float32 "
        "backward");
}
