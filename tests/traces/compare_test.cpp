#include "traces/compare.hpp"

#include <algorithm>
#include <cmath>

#include "core/costs.hpp"
#include "tests/catch.hpp"
#include "tests/traces/fixture.hpp"

using namespace nebula;

namespace {

Comparison compare_runs(const Plan& plan, const Costs& predicted, const Costs& measured) {
  const auto expected = test::run_plan(plan, predicted, 3, {});
  const auto seen = test::run_plan(plan, measured, 5, {});
  return compare(plan, expected, summarize(plan, expected), seen, summarize(plan, seen));
}

ComparisonRow row_of(const Comparison& comparison, const std::string& what) {
  const auto found = std::find_if(comparison.rows.begin(), comparison.rows.end(),
                                  [&](const ComparisonRow& row) { return row.what == what; });
  REQUIRE(found != comparison.rows.end());
  return *found;
}

}  // namespace

TEST_CASE("equal costs compare equal in every row") {
  const Plan plan = test::make_plan({4, 6}, {"a", "b"});
  const Costs costs = first_principles(plan.cluster, plan.model, plan.job);
  const Comparison comparison = compare_runs(plan, costs, costs);
  for (const ComparisonRow& row : comparison.rows) {
    INFO(row.what);
    // First principles leave no rest but what rounding leaves.
    CHECK((std::abs(row.predicted - row.measured) < 1e-12 || std::abs(row.difference()) < 1e-9));
  }
  for (const char* what :
       {"step", "bubble", "forward of stage 0", "backward of stage 1", "update of stage 1",
        "encode activation of stage 0", "decode gradient of stage 0", "transfer activation 0 -> 1",
        "transfer gradient 1 -> 0", "c0->c1 a step", "c1->c0 use"})
    row_of(comparison, what);
}

TEST_CASE("a difference shows where it is, as predicted against measured") {
  const Plan plan = test::make_plan({4, 6}, {"a", "b"});
  const Costs truth = first_principles(plan.cluster, plan.model, plan.job);
  Costs wrong = truth;
  for (auto& [kind, layer] : wrong.devices["b"].layers)
    layer.forward_s = layer.forward_s.scaled(1.5);
  const Comparison comparison = compare_runs(plan, wrong, truth);
  CHECK(row_of(comparison, "forward of stage 1").difference() == Approx(0.5));
  CHECK(row_of(comparison, "forward of stage 0").difference() == Approx(0).margin(1e-9));
  CHECK(row_of(comparison, "step").difference() > 0);
  CHECK(row_of(comparison, "c0->c1 a step").difference() == Approx(0).margin(1e-9));
}

TEST_CASE("what one side lacks shows as zero and without a difference") {
  const Plan plan = test::make_plan({4, 6}, {"a", "b"});
  const Costs costs = first_principles(plan.cluster, plan.model, plan.job);
  const auto expected = test::run_plan(plan, costs, 3, {});
  auto seen = expected;
  std::erase_if(seen, [](const Event& event) { return event.kind == EventKind::encode; });
  const Comparison comparison =
      compare(plan, expected, summarize(plan, expected), seen, summarize(plan, seen));
  const ComparisonRow encode = row_of(comparison, "encode activation of stage 0");
  CHECK(encode.measured == 0);
  CHECK(encode.predicted > 0);
  CHECK(std::isnan(encode.difference()));
}

TEST_CASE("all that ends a step counts as its update, and pauses as rest") {
  const Plan plan = test::make_plan({10}, {"a"});
  const Costs costs = first_principles(plan.cluster, plan.model, plan.job);
  const auto expected = test::run_plan(plan, costs, 4, {});
  auto seen = test::run_plan(plan, costs, 4, {}, 0.5);
  const double update_s = row_of(compare_runs(plan, costs, costs), "update of stage 0").measured;
  for (Event& event : seen)
    if (event.kind == EventKind::op && event.op.kind == OpKind::sum_norm) event.start_s -= 0.25;
  const Comparison comparison =
      compare(plan, expected, summarize(plan, expected), seen, summarize(plan, seen));
  CHECK(row_of(comparison, "update of stage 0").predicted == Approx(update_s));
  CHECK(row_of(comparison, "update of stage 0").measured == Approx(update_s + 0.25));
  CHECK(row_of(comparison, "preparation and rest of stage 0").predicted == Approx(0).margin(1e-9));
  CHECK(row_of(comparison, "preparation and rest of stage 0").measured == Approx(0.25));
  for (const ComparisonRow& row : comparison.rows) CHECK(row.what != "sum_norm of stage 0");
}

TEST_CASE("the table and the JSON carry units") {
  const Comparison comparison{{{"step", Measure::seconds, 1.1, 1},
                               {"bubble", Measure::ratio, 0.25, 0.5},
                               {"north->south a step", Measure::bytes, 1, 0}}};
  CHECK(to_table(comparison) ==
        "                       predicted     measured  difference\n"
        "step                      1.10 s       1.00 s     +10.0 %\n"
        "bubble                    25.0 %       50.0 %     -50.0 %\n"
        "north->south a step       1.00 B       0.00 B           -\n");
  CHECK(to_json(Node{NodeTable{{"rows", to_node(comparison)}}, 0}) == R"({
  "rows": [
    {
      "what": "step",
      "unit": "s",
      "predicted": 1.1,
      "measured": 1.0,
      "difference": 0.10000000000000009
    },
    {
      "what": "bubble",
      "unit": "1",
      "predicted": 0.25,
      "measured": 0.5,
      "difference": -0.5
    },
    {
      "what": "north->south a step",
      "unit": "B",
      "predicted": 1.0,
      "measured": 0.0
    }
  ]
}
)");
}
