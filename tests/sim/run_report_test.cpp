#include "sim/run_report.hpp"

#include <cmath>

#include "core/fields.hpp"
#include "tests/catch.hpp"
#include "tests/core/plan_fixture.hpp"

using namespace nebula;

namespace {

RunReport report_of(const Plan& plan) {
  const Costs costs = first_principles(plan.cluster, plan.model, plan.job);
  return make_report(plan, simulate_plan(plan, plan.cluster, costs), costs);
}

}  // namespace

TEST_CASE("a report's figures agree with each other") {
  const RunReport report = report_of(make_plan(3, 2, 8));
  CHECK(report.tokens_per_s * report.summary.step_s == Approx(16 * 16));
  CHECK(report.bubble_without_transfers == Approx(2.0 / 10));
  CHECK(report.bubble_unoverlapped > report.bubble_without_transfers);
  REQUIRE(report.memory.size() == 3);
  CHECK(report.costs_source == "first principles");

  const Node node = to_node(report);
  Fields fields(node, "report");
  CHECK(fields.number("step_s") == report.summary.step_s);
  CHECK(fields.number("paper_bubble_2") == report.bubble_unoverlapped);
  auto stages = fields.tables("stages");
  REQUIRE(stages.size() == 3);
  for (Fields& stage : stages) {
    double sum = 0;
    for (const char* part :
         {"forward_s", "backward_s", "update_s", "codec_s", "prepare_s", "warm_up_s",
          "wait_activation_s", "wait_gradient_s", "drain_s", "other_s"}) {
      sum += stage.number(part);
    }
    CHECK(sum == Approx(report.summary.step_s));
  }
  CHECK(fields.tables("links").size() == 4);
}

TEST_CASE("the text names step, bubble, stages and links") {
  const std::string text = to_text(report_of(make_plan(2, 1, 4)));
  for (const char* part :
       {"2 stages: c0 [0,4) | c1 [4,8)", "tokens/s", "costs: first principles",
        "without transfers (1)", "wait_gradient", "Link c0->c1", "of the line"}) {
    CAPTURE(part, text);
    CHECK(text.find(part) != std::string::npos);
  }
}

TEST_CASE("one stage has no bubble and no links") {
  const RunReport report = report_of(make_plan(1, 2, 4));
  CHECK(std::abs(report.summary.bubble) < 1e-9);
  CHECK(report.bubble_without_transfers == 0);
  CHECK(report.bubble_unoverlapped == 0);
  CHECK(report.summary.links.empty());
}
