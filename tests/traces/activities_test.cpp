#include "traces/activities.hpp"

#include <cmath>

#include "core/costs.hpp"
#include "tests/catch.hpp"
#include "tests/traces/fixture.hpp"

using namespace nebula;

TEST_CASE("quantiles are interpolated") {
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 2, 3}) == 2.5);
  CHECK(quantile({10, 20, 30, 40, 50}, 0.1) == Approx(14));
  CHECK(quantile({7}, 0.9) == 7);
  CHECK(quantile({1, 2}, 1) == 2);
  CHECK(std::isnan(median({})));
}

TEST_CASE("the typical value is a mean without stragglers") {
  CHECK(typical({1, 2, 3, 6}) == Approx(3));
  CHECK(typical({1, 2, 3, 100}) == Approx(2));
  CHECK(typical({5}) == 5);
  CHECK(typical({0, 0}) == 0);
  CHECK(std::isnan(typical({})));
}

TEST_CASE("activities are told apart by what is done where, not by micro-batch and step") {
  const Plan plan = test::make_plan({4, 6}, {"a", "b"});
  const Costs costs = first_principles(plan.cluster, plan.model, plan.job);
  const auto events = test::run_plan(plan, costs, 3, {});
  const auto seconds = durations(events);
  const Activity forward{EventKind::op, 1, OpKind::forward, MessageKind::activation, -1};
  REQUIRE(seconds.contains(forward));
  CHECK(seconds.at(forward).size() == 3 * 8);
  CHECK(to_string(forward) == "forward of stage 1");
  const Activity transfer{EventKind::transfer, 0, OpKind::forward, MessageKind::gradient, 1};
  REQUIRE(seconds.contains(transfer));
  CHECK(seconds.at(transfer).size() == 3 * 8);
  CHECK(to_string(transfer) == "transfer gradient 1 -> 0");
  for (const auto& [activity, all] : seconds) CHECK(activity.kind != EventKind::wait);
}

TEST_CASE("the first steps are left out by their order, not by their number") {
  const Plan plan = test::make_plan({10}, {"a"});
  const Costs costs = first_principles(plan.cluster, plan.model, plan.job);
  auto events = test::run_plan(plan, costs, 5, {});
  for (Event& event : events) event.step += 40;  // a resumed run
  Event save;
  save.kind = EventKind::save;
  save.step = 99;
  events.push_back(save);
  CHECK(steps_of(events) == std::vector<int>{40, 41, 42, 43, 44});
  const auto kept = after_warm_up(events, 2);
  CHECK(steps_of(kept) == std::vector<int>{42, 43, 44});
  for (const Event& event : kept) CHECK((event.step >= 42 && event.step <= 44));
  CHECK(after_warm_up(events, 9).empty());
}
