#include "planner/space.hpp"

#include <set>

#include "core/error.hpp"
#include "tests/catch.hpp"
#include "tests/core/plan_fixture.hpp"

using namespace nebula;

namespace {

Space make_space(const Plan& plan, const Pins& pins = {}) {
  const Costs costs = first_principles(plan.cluster, plan.model, plan.job);
  return {plan.cluster, plan.model, plan.job, costs, pins};
}

}  // namespace

TEST_CASE("the space holds every placement and split once") {
  Plan plan = make_plan(2, 1, 1, 3);  // 5 layers, one micro-batch
  plan.cluster.clouds[0].devices[0].count = 2;
  // One stage on either cloud; two on c0, or c0 and c1 in either order; three with c0 c0 together.
  // Splits of 5 layers: 1, 4, 6. Schedules: 1 for one stage, GPipe and 1F1B else.
  const std::size_t one = 2 * 1 * 1;
  const std::size_t two = 3 * 4 * 2;
  const std::size_t three = 2 * 6 * 2;
  const Space space = make_space(plan);
  CHECK(space.candidates().size() == one + two + three);
  std::set<std::string> seen;
  for (const Candidate& candidate : space.candidates()) {
    const Plan candidate_plan = space.plan(candidate);
    CHECK_NOTHROW(validate(candidate_plan, "candidate"));
    CHECK(seen.insert(one_line(candidate_plan)).second);
  }
}

TEST_CASE("pins take choices away") {
  Plan plan = make_plan(2, 2, 4);
  plan.job.activation_codecs = {{"float32", 64}, {"int8", 64}};
  Pins pins;
  pins.stages = 2;
  pins.micro_batches = 4;
  pins.schedule = "gpipe";
  pins.codec = "bf16";
  const Space space = make_space(plan, pins);
  for (const Candidate& candidate : space.candidates()) {
    const Plan one = space.plan(candidate);
    CHECK(one.stage_count() == 2);
    CHECK(one.micro_batches == 4);
    CHECK(one.schedule == gpipe());
    CHECK(one.boundaries[0].forward.name == "bf16");
  }
  pins.micro_batches = 3;
  CHECK_THROWS_AS(make_space(plan, pins), InputError);
  pins.micro_batches = 4;
  pins.stages = 3;
  CHECK_THROWS_AS(make_space(plan, pins), InputError);
}

TEST_CASE("clouds without a link are not joined") {
  Plan plan = make_plan(2, 1, 2);
  plan.cluster.links.pop_back();
  const Space space = make_space(plan);
  for (const Candidate& candidate : space.candidates()) {
    CHECK(space.plan(candidate).stage_count() == 1);
  }
}

TEST_CASE("too many splits are cut to the best balanced") {
  Plan plan = make_plan(4, 1, 1, 40);
  const Space space = make_space(plan);
  CHECK(space.dropped_splits() > 0);
  CHECK(space.candidates().size() < 100000);
}
