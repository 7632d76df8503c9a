#include <iostream>
#include <memory>

#include <boost/program_options/value_semantic.hpp>

#include "core/error.hpp"
#include "core/program.hpp"
#include "core/units.hpp"
#include "planner/report.hpp"
#include "planner/search.hpp"

namespace {

using namespace nebula;
namespace po = boost::program_options;

struct PlanOptions {
  std::string cluster;
  std::string model;
  std::string job;
  std::string costs;
  std::string calibration;
  std::string out = "plan.json";
  Pins pins;
  int workers = 0;
};

Costs read_costs(const PlanOptions& options, const Cluster& cluster, const Model& model,
                 const Job& job) {
  if (!options.costs.empty() && !options.calibration.empty()) {
    throw InputError("--costs", "and --calibration both give the costs; keep one");
  }
  const std::string& file = options.costs.empty() ? options.calibration : options.costs;
  if (file.empty()) return first_principles(cluster, model, job);
  Costs costs = read_costs_file(file);
  check_costs(costs, cluster, model, job, file);
  return costs;
}

void check_options(const PlanOptions& options) {
  if (options.pins.stages < 0) throw InputError("--stages", "is negative");
  if (options.pins.micro_batches < 0) throw InputError("--micro-batches", "is negative");
  const std::string& schedule = options.pins.schedule;
  if (!schedule.empty() && schedule != "gpipe" && schedule != "1f1b") {
    throw InputError("--schedule", "is '" + schedule + "', expected gpipe or 1f1b");
  }
  if (!options.pins.codec.empty()) codec_info(options.pins.codec);
}

void print(const SearchResult& result, const std::string& out) {
  const Plan& plan = result.best.front().plan;
  std::cout << table(result) << "\nChosen: " << one_line(plan) << "\nWhy: " << plan.predicted.reason
            << "\nCosts: " << plan.predicted.costs_source << ". Searched " << result.candidates
            << " plans in " << format_seconds(result.seconds) << ": " << result.simulated
            << " simulated, " << result.candidates - result.simulated - result.too_large
            << " ruled out by bounds, " << result.too_large << " too large for memory.\n";
  if (result.dropped_splits > 0) {
    std::cout << "Of the layer splits, the " << result.dropped_splits
              << " worst balanced were left out.\n";
  }
  std::cout << "Plan in " << out << '\n';
}

int run(const PlanOptions& options, const CommonOptions& common) {
  check_options(options);
  const Cluster cluster = read_cluster_file(options.cluster);
  const Model model = read_model_file(options.model);
  const Job job = read_job_file(options.job);
  if (job.sequence_length > model.max_positions) {
    throw InputError(options.job + ": sequence_length", "is more than the " +
                                                            std::to_string(model.max_positions) +
                                                            " max_positions of " + options.model);
  }
  const Costs costs = read_costs(options, cluster, model, job);
  const SearchResult result = search(cluster, model, job, costs, options.pins, options.workers);
  write_plan_file(options.out, result.best.front().plan);
  if (common.json) {
    std::cout << to_json(to_node(result));
  } else if (!common.quiet) {
    print(result, options.out);
  }
  return 0;
}

Command plan_command() {
  auto options = std::make_shared<PlanOptions>();
  return {"", "searches for the plan that trains fastest",
          "nebula-plan --cluster c.toml --model m.toml --job j.toml --out plan.json",
          [options](po::options_description& list) {
            list.add_options()("cluster",
                               po::value(&options->cluster)->required()->value_name("FILE"),
                               "clouds, devices and links")(
                "model", po::value(&options->model)->required()->value_name("FILE"),
                "model file, or a Hugging Face config.json")(
                "job", po::value(&options->job)->required()->value_name("FILE"),
                "batch, steps, optimiser, codecs allowed")(
                "costs", po::value(&options->costs)->value_name("FILE"),
                "measured by nebula-exec profile (default: first principles)")(
                "calibration", po::value(&options->calibration)->value_name("FILE"),
                "fitted by nebula-sim calibrate")(
                "out", po::value(&options->out)->default_value(options->out)->value_name("FILE"),
                "plan to write")("stages", po::value(&options->pins.stages)->value_name("N"),
                                 "only plans of so many stages")(
                "micro-batches", po::value(&options->pins.micro_batches)->value_name("N"),
                "only plans of so many micro-batches")(
                "schedule", po::value(&options->pins.schedule)->value_name("NAME"),
                "only gpipe or 1f1b")("codec", po::value(&options->pins.codec)->value_name("NAME"),
                                      "only this codec, both ways")(
                "workers", po::value(&options->workers)->value_name("N"),
                "simulating processes (default: one a core)");
          },
          [options](const CommonOptions& common) { return run(*options, common); }};
}

}  // namespace

int main(int argc, char** argv) {
  return nebula::run_program(
      {"nebula-plan", "plans the training of a model across clouds", {plan_command()}}, argc, argv);
}
