#include <iostream>
#include <memory>

#include <boost/program_options/value_semantic.hpp>

#include "core/error.hpp"
#include "core/fields.hpp"
#include "core/program.hpp"
#include "sim/run_report.hpp"
#include "sim/simulate.hpp"
#include "traces/activities.hpp"
#include "traces/calibrate.hpp"
#include "traces/chrome_trace.hpp"
#include "traces/compare.hpp"
#include "traces/trace_reader.hpp"

namespace {

using namespace nebula;
namespace po = boost::program_options;

struct RunOptions {
  std::string plan;
  std::string cluster;
  std::string costs;
  std::string timeline;
};

Costs read_costs(const std::string& path, const Cluster& cluster, const Plan& plan) {
  if (path.empty()) return first_principles(cluster, plan.model, plan.job);
  Costs costs = read_costs_file(path);
  check_costs(costs, cluster, plan.model, plan.job, path);
  return costs;
}

int run(const RunOptions& options, const CommonOptions& common) {
  const Plan plan = read_plan_file(options.plan);
  const Cluster cluster =
      options.cluster.empty() ? plan.cluster : read_cluster_file(options.cluster);
  const Costs costs = read_costs(options.costs, cluster, plan);
  const PlanSimulation simulated = simulate_plan(plan, cluster, costs);
  if (!options.timeline.empty()) {
    write_chrome_trace(options.timeline, simulated.simulation.events, plan);
  }
  const RunReport report = make_report(plan, simulated, costs);
  if (common.json) {
    std::cout << to_json(to_node(report)) << '\n';
    return 0;
  }
  std::cout << to_text(report);
  if (!options.timeline.empty() && !common.quiet) {
    std::cout << "Timeline in " << options.timeline << " (open in ui.perfetto.dev)\n";
  }
  return 0;
}

Command run_command() {
  auto options = std::make_shared<RunOptions>();
  const auto add = [options](po::options_description& list) {
    auto file = [](std::string& value) { return po::value(&value)->value_name("FILE"); };
    list.add_options()("plan", file(options->plan)->required(), "plan to simulate")(
        "cluster", file(options->cluster), "another cluster than the plan's: a what-if")(
        "costs", file(options->costs), "profile or calibration (default: first principles)")(
        "timeline", file(options->timeline), "write the timeline for Chrome or Perfetto");
  };
  return {"run", "simulates a plan", "nebula-sim run --plan plan.json --timeline timeline.json",
          add, [options](const CommonOptions& common) { return run(*options, common); }};
}

// Steps left out of every measurement: connections, caches and allocators are still cold.
constexpr int warm_up_steps = 2;

// A run as its traces tell it.
struct MeasuredRun {
  Plan plan;
  std::vector<Event> events;
  bool emulated = false;
};

MeasuredRun read_run(const std::vector<std::string>& traces_given, const std::string& plan_file) {
  const std::vector<Trace> traces = read_traces(traces_given);
  return {plan_of(traces, plan_file), merge(traces), traces.front().info.emulated};
}

StepSummary summarize_run(const MeasuredRun& measured) {
  try {
    return summarize(measured.plan, measured.events, warm_up_steps);
  } catch (const InputError& error) {
    throw InputError("--traces", error.what());
  }
}

struct TraceOptions {
  std::vector<std::string> traces;
  std::string plan;
  std::string cluster;
  std::string costs;
  std::string out;
};

int calibrate_run(const TraceOptions& options, const CommonOptions& common) {
  const MeasuredRun measured = read_run(options.traces, options.plan);
  const Plan& plan = measured.plan;
  Costs costs = calibrate(plan, measured.events, read_costs(options.costs, plan.cluster, plan),
                          {.warm_up_steps = warm_up_steps});
  if (measured.emulated) {
    for (auto& [name, link] : costs.links) {
      if (link.source == "calibration") link.source = "calibration, emulated line";
    }
  }
  // What all the parts come to together stands first.
  const double step_s = simulate_plan(plan, plan.cluster, costs).summary.step_s;
  costs.residuals.insert(costs.residuals.begin(), {"step", step_s, summarize_run(measured).step_s});
  write_file(options.out, to_json(costs));

  Comparison fit;
  for (const Residual& residual : costs.residuals) {
    fit.rows.push_back(
        {residual.what, Measure::seconds, residual.predicted_s, residual.measured_s});
  }
  if (common.json) {
    std::cout << to_json(
        TableWriter().set("costs", options.out).set("residuals", to_node(fit)).node());
    return 0;
  }
  std::cout << "Calibrated costs beside the traces they were fitted to:\n" << to_table(fit);
  if (!common.quiet) std::cout << "Costs in " << options.out << '\n';
  return 0;
}

int compare_run(const TraceOptions& options, const CommonOptions& common) {
  const MeasuredRun measured = read_run(options.traces, options.plan);
  const Plan& plan = measured.plan;
  const Cluster cluster =
      options.cluster.empty() ? plan.cluster : read_cluster_file(options.cluster);
  const Costs costs = read_costs(options.costs, cluster, plan);
  const PlanSimulation predicted = simulate_plan(plan, cluster, costs);
  const Comparison comparison =
      compare(plan, predicted.simulation.events, predicted.summary,
              after_warm_up(measured.events, warm_up_steps), summarize_run(measured));
  if (common.json) {
    std::cout << to_json(
        TableWriter().set("costs_source", costs.source).set("rows", to_node(comparison)).node());
    return 0;
  }
  std::cout << "Predicted from " << costs.source << ", measured by the traces:\n"
            << to_table(comparison);
  return 0;
}

int export_timeline(const TraceOptions& options, const CommonOptions& common) {
  const MeasuredRun measured = read_run(options.traces, options.plan);
  write_chrome_trace(options.out, measured.events, measured.plan);
  if (common.json) {
    std::cout << to_json(TableWriter()
                             .set("timeline", options.out)
                             .set("events", std::int64_t(measured.events.size()))
                             .node());
  } else if (!common.quiet) {
    std::cout << "Timeline in " << options.out << " (open in ui.perfetto.dev)\n";
  }
  return 0;
}

// Options of the commands on traces; `add_more` has those that only one of them knows.
Command trace_command(Command command, int (*work)(const TraceOptions&, const CommonOptions&),
                      void (*add_more)(TraceOptions&, po::options_description&)) {
  auto options = std::make_shared<TraceOptions>();
  command.options = [options, add_more](po::options_description& list) {
    list.add_options()(
        "traces", po::value(&options->traces)->multitoken()->required()->value_name("DIR|FILES"),
        "the run's traces, one a stage")("plan", po::value(&options->plan)->value_name("FILE"),
                                         "the run's plan (default: as embedded in the traces)");
    add_more(*options, list);
  };
  command.run = [options, work](const CommonOptions& common) { return work(*options, common); };
  return command;
}

Command calibrate_command() {
  return trace_command(
      {"calibrate",
       "fits costs to the traces of a run",
       "nebula-sim calibrate --traces run/traces --costs profile.json --out calibration.json",
       {},
       {}},
      calibrate_run, [](TraceOptions& options, po::options_description& list) {
        list.add_options()("costs", po::value(&options.costs)->value_name("FILE"),
                           "costs to start from (default: first principles)")(
            "out", po::value(&options.out)->required()->value_name("FILE"),
            "where to write the calibrated costs");
      });
}

Command compare_command() {
  return trace_command(
      {"compare",
       "shows predicted beside measured",
       "nebula-sim compare --plan plan.json --traces run/traces --costs calibration.json",
       {},
       {}},
      compare_run, [](TraceOptions& options, po::options_description& list) {
        list.add_options()("costs", po::value(&options.costs)->value_name("FILE"),
                           "costs to predict from (default: first principles)")(
            "cluster", po::value(&options.cluster)->value_name("FILE"),
            "another cluster than the plan's: a what-if");
      });
}

Command timeline_command() {
  return trace_command({"timeline",
                        "exports a run's traces for Chrome or Perfetto",
                        "nebula-sim timeline --traces run/traces --out timeline.json",
                        {},
                        {}},
                       export_timeline, [](TraceOptions& options, po::options_description& list) {
                         list.add_options()("out",
                                            po::value(&options.out)->required()->value_name("FILE"),
                                            "where to write the timeline");
                       });
}

}  // namespace

int main(int argc, char** argv) {
  return nebula::run_program(
      {"nebula-sim",
       "simulates plans and compares them with what was measured",
       {run_command(), calibrate_command(), compare_command(), timeline_command()}},
      argc, argv);
}
