// nebula-sim's commands on traces, from files to files.

#include <cstdio>

#include <nlohmann/json.hpp>
#include <sys/wait.h>

#include "core/costs.hpp"
#include "core/node.hpp"
#include "core/step_costs.hpp"
#include "tests/catch.hpp"
#include "tests/traces/fixture.hpp"
#include "traces/trace_writer.hpp"

using namespace nebula;
using nlohmann::json;

namespace {

struct Outcome {
  int code = -1;
  std::string out;
};

Outcome nebula_sim(const std::string& arguments) {
  FILE* pipe = popen((NEBULA_BIN_DIR "/nebula-sim " + arguments + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  Outcome outcome;
  char buffer[4096];
  while (const std::size_t n = fread(buffer, 1, sizeof buffer, pipe)) outcome.out.append(buffer, n);
  const int status = pclose(pipe);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Traces of a plan whose devices are 300 times slower than first principles say.
struct SlowRun {
  SlowRun() {
    costs = first_principles(plan.cluster, plan.model, plan.job);
    for (auto& [kind, device] : costs.devices)
      for (auto& [name, layer] : device.layers) {
        layer.forward_s = layer.forward_s.scaled(300);
        layer.backward_s = layer.backward_s.scaled(300);
      }
    const auto events = test::run_plan(plan, costs, 8, {0.01, 0, 3});
    for (int stage = 0; stage < 2; ++stage) {
      TraceInfo info = describe(plan, stage);
      info.emulated = true;
      TraceWriter writer(folder.file("stage-" + std::to_string(stage) + ".h5"), info);
      for (const Event& event : events)
        if (event.stage == stage) writer.record(event);
      writer.close();
    }
  }
  test::TemporaryFolder folder;
  Plan plan = test::make_plan({4, 6}, {"a", "b"});
  Costs costs;
};

}  // namespace

TEST_CASE("calibrate, compare and timeline close the loop on files") {
  const SlowRun run;
  const std::string traces = " --traces " + run.folder.path();
  const std::string file = run.folder.file("calibration.json");

  const Outcome before = nebula_sim("compare --json" + traces);
  REQUIRE(before.code == 0);
  const json first = json::parse(before.out);
  CHECK(first["costs_source"] == "first principles");
  CHECK(first["rows"][0]["what"] == "step");
  CHECK(first["rows"][0]["difference"].get<double>() < -0.1);

  const Outcome calibrated = nebula_sim("calibrate" + traces + " --out " + file);
  INFO(calibrated.out);
  REQUIRE(calibrated.code == 0);
  CHECK(has(calibrated.out, "forward of stage 1"));
  const Costs found = read_costs_file(file);
  CHECK(found.source == "calibration");
  CHECK(found.links.at("c0->c1").source == "calibration, emulated line");
  CHECK(found.residuals.at(0).what == "step");
  const StepCosts is = step_costs(run.plan, run.plan.cluster, found);
  const StepCosts should = step_costs(run.plan, run.plan.cluster, run.costs);
  CHECK(is.stages[0].forward_s == Approx(should.stages[0].forward_s).epsilon(0.01));

  const Outcome after = nebula_sim("compare --json --costs " + file + traces);
  REQUIRE(after.code == 0);
  const json second = json::parse(after.out);
  // Everything is known now, but for 1 % of noise that a pipeline adds up.
  CHECK(std::abs(second["rows"][0]["difference"].get<double>()) < 0.02);

  const std::string timeline = run.folder.file("timeline.json");
  REQUIRE(nebula_sim("timeline" + traces + " --out " + timeline).code == 0);
  CHECK(json::parse(read_file(timeline))["traceEvents"].size() > 100);
}

TEST_CASE("wrong input to the commands on traces ends with 2 and a message") {
  const SlowRun run;
  const std::string stage_0 = run.folder.file("stage-0.h5");
  const std::string out = " --out " + run.folder.file("x.json");
  for (const auto& [arguments, part] : std::vector<std::pair<std::string, std::string>>{
           {"calibrate --out x.json", "--traces"},
           {"calibrate --traces " + run.folder.path(), "--out"},
           {"calibrate --traces /nowhere" + out, "/nowhere: does not exist"},
           {"calibrate --traces " + stage_0 + out, "the trace of stage 1 of 2 is missing"},
           {"calibrate --traces " + run.folder.path() + " --costs /nowhere.json" + out,
            "/nowhere.json"},
           {"compare --traces " + run.folder.path() + " --plan /nowhere.json", "/nowhere.json"},
           {"timeline --traces " + stage_0 + out, "is missing"}}) {
    const Outcome outcome = nebula_sim(arguments);
    INFO(arguments << "\n" << outcome.out);
    CHECK(outcome.code == 2);
    CHECK(has(outcome.out, part));
  }
  const Outcome unwritable =
      nebula_sim("timeline --traces " + run.folder.path() + " --out /nowhere/t.json");
  CHECK(unwritable.code == 1);
  CHECK(has(unwritable.out, "/nowhere/t.json"));
}
