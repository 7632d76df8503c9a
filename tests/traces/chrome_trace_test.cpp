#include "traces/chrome_trace.hpp"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "core/costs.hpp"
#include "core/error.hpp"
#include "core/node.hpp"
#include "tests/catch.hpp"
#include "tests/traces/fixture.hpp"

using namespace nebula;
using nlohmann::json;

namespace {

json chrome_events(const std::vector<Event>& events, const Plan& plan) {
  const test::TemporaryFolder folder;
  write_chrome_trace(folder.file("t.json"), events, plan);
  return json::parse(read_file(folder.file("t.json"))).at("traceEvents");
}

}  // namespace

TEST_CASE("every event becomes a complete event with its name and microseconds") {
  const Plan plan = test::make_plan({4, 6}, {"a", "b"});
  Event forward;
  forward.step = 7;
  forward.op = {OpKind::forward, 3, 0};
  // Hours into the run, nanoseconds still count.
  forward.start_s = 86400.000001;
  forward.end_s = 86400.250001;
  Event transfer;
  transfer.kind = EventKind::transfer;
  transfer.stage = 1;
  transfer.peer = 0;
  transfer.micro_batch = 3;
  transfer.start_s = 86401;
  transfer.end_s = 86401.5;
  transfer.bytes = 12345;
  std::map<std::string, json> by_name;
  std::vector<std::string> processes;
  for (const json& event : chrome_events({transfer, forward}, plan)) {
    if (event.at("ph") == "X") by_name[event.at("name")] = event;
    if (event.at("name") == "process_name") processes.push_back(event.at("args").at("name"));
  }
  CHECK(processes == std::vector<std::string>{"stage 0 (c0)", "stage 1 (c1)"});
  REQUIRE(by_name.contains("F3"));
  CHECK(by_name["F3"].at("pid") == 0);
  CHECK(by_name["F3"].at("ts").get<double>() == 86400000001.0);
  CHECK(by_name["F3"].at("dur").get<double>() == Approx(250000));
  CHECK(by_name["F3"].at("args").at("step") == 7);
  REQUIRE(by_name.contains("activation 3"));
  CHECK(by_name["activation 3"].at("pid") == 1);
  CHECK(by_name["activation 3"].at("args").at("bytes") == 12345);
  CHECK(by_name["activation 3"].at("args").at("under_way_us").get<double>() == Approx(500000));
}

TEST_CASE("no row shows two things at once, and every row has a name") {
  const Plan plan = test::make_plan({3, 4, 3}, {"a", "b", "c"});
  const Costs costs = first_principles(plan.cluster, plan.model, plan.job);
  const auto events = test::run_plan(plan, costs, 3, {0.3, 0, 2}, 1e-3);
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> rows;
  std::map<std::pair<int, int>, std::string> names;
  std::size_t count = 0;
  for (const json& event : chrome_events(events, plan)) {
    const std::pair<int, int> row(event.at("pid"), event.at("tid"));
    if (event.at("name") == "thread_name") names[row] = event.at("args").at("name");
    if (event.at("ph") != "X") continue;
    ++count;
    rows[row].emplace_back(event.at("ts"), event.at("dur"));
  }
  CHECK(count == events.size());
  for (auto& [row, spans] : rows) {
    CHECK(names.contains(row));
    std::sort(spans.begin(), spans.end());
    for (std::size_t i = 1; i < spans.size(); ++i)
      REQUIRE(spans[i].first >= spans[i - 1].first + spans[i - 1].second - 0.003);
  }
  CHECK(names[{1, 0}] == "compute");
  CHECK(names[{1, 1}] == "codec");
  CHECK(names[{1, 2}] == "waiting");
  CHECK(names[{1, 3}] == "from stage 0");
  CHECK(names[{1, 5}] == "from stage 2");
}

TEST_CASE("names are escaped, empty timelines are valid, bad paths are errors") {
  Plan plan = test::make_plan({10}, {"a"});
  plan.stages[0].cloud = "a \"quoted\"\nname";
  const json events = chrome_events({}, plan);
  CHECK(events.at(0).at("args").at("name") == "stage 0 (a \"quoted\"\nname)");
  CHECK_THROWS_AS(write_chrome_trace("/nowhere/t.json", {}, plan), RunError);
}
