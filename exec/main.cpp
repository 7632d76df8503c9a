#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include <boost/program_options/value_semantic.hpp>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include "core/error.hpp"
#include "core/fields.hpp"
#include "core/node.hpp"
#include "exec/certificates.hpp"
#include "exec/commands.hpp"
#include "exec/cpu_share.hpp"
#include "exec/progress.hpp"
#include "exec/supervise.hpp"
#include "exec/torch_compat.hpp"
#include "exec/worker.hpp"
#include "traces/trace_writer.hpp"

namespace {

using namespace nebula;
namespace po = boost::program_options;
namespace fs = std::filesystem;

struct TrainOptions {
  std::string plan;
  std::string cloud;
  int stage = -1;
  std::string out;
  bool local = false;
  bool emulate_wan = false;
  WorkerOptions worker;
};

// Everything on this machine: stage s listens on 127.0.0.1 at the first cloud's port + s.
void make_local(Plan& plan) {
  const int port = plan.cluster.clouds.front().port;
  for (Cloud& cloud : plan.cluster.clouds) {
    cloud.host = "127.0.0.1";
    cloud.port = port;
  }
}

std::vector<int> stages_of(const Plan& plan, const std::string& cloud) {
  if (!plan.cluster.find_cloud(cloud)) {
    throw InputError("--cloud", "'" + cloud + "' is not in the plan's cluster");
  }
  std::vector<int> stages;
  for (int s = 0; s < plan.stage_count(); ++s) {
    if (plan.stages[std::size_t(s)].cloud == cloud) stages.push_back(s);
  }
  if (stages.empty()) throw InputError("--cloud", "the plan has no stage in '" + cloud + "'");
  return stages;
}

// A trace of an earlier part of the run is moved aside, not lost.
std::string trace_file(const TrainOptions& options, int stage) {
  const fs::path folder = fs::path(options.out) / "traces";
  const std::string name = "stage-" + std::to_string(stage);
  const fs::path place = folder / (name + ".h5");
  make_folder(folder);
  if (options.worker.resume && fs::exists(place)) {
    make_folder(folder / "earlier");
    int part = 1;
    const auto old = [&] {
      return folder / "earlier" / (name + "." + std::to_string(part) + ".h5");
    };
    while (fs::exists(old())) ++part;
    fs::rename(place, old());
  }
  return place;
}

StepMetrics to_metrics(const Plan& plan, const StepProgress& progress) {
  StepMetrics metrics;
  metrics.step = progress.step;
  metrics.loss = progress.loss;
  metrics.grad_norm = progress.grad_norm;
  metrics.learning_rate = progress.learning_rate;
  metrics.tokens = plan.job.tokens_per_step();
  metrics.step_s = progress.step_s;
  metrics.peak_bytes = peak_memory_bytes();
  return metrics;
}

// 0 for a plan written by hand.
double predicted_memory(const Plan& plan, int stage) {
  const auto& memory = plan.predicted.memory_bytes;
  return std::size_t(stage) < memory.size() ? memory[std::size_t(stage)] : 0;
}

// All stages of a local run are on this machine: each has its threads' CPUs.
CpuShare local_share(const Plan& plan, int stage) {
  CpuShare share;
  for (int s = 0; s < plan.stage_count(); ++s) {
    const int threads = plan.stages[std::size_t(s)].threads;
    if (s < stage) share.first += threads;
    if (s == stage) share.count = threads;
    share.claimed += threads;
  }
  return share;
}

int train_stage(const Plan& plan, const TrainOptions& options, int stage, bool quiet) {
  const StagePlan& planned = plan.stages[std::size_t(stage)];
  if (options.local) bind_to(local_share(plan, stage));
  prepare_torch(planned.threads, 2 * predicted_memory(plan, stage) + 256e6);
  auto log =
      spdlog::stderr_logger_mt("stage " + std::to_string(stage) + " (" + planned.cloud + ")");
  log->set_pattern("%H:%M:%S %n: %v");
  WorkerOptions worker = options.worker;
  worker.stage = stage;
  worker.checkpoints = options.out + "/checkpoints";
  if (options.emulate_wan) worker.emulation_folder = options.out + "/lines";
  if (options.emulate_wan) make_folder(worker.emulation_folder);

  const Clock clock;
  TraceInfo info = describe(plan, stage);
  info.origin_unix_ns = clock.origin_ns;
  info.program = "nebula-exec";
  info.run = run_name(worker.keys);
  info.emulated = options.emulate_wan;
  TraceWriter trace(trace_file(options, stage), info);
  const bool last = stage == plan.stage_count() - 1;
  RunLog run_log(plan, last && !quiet);
  const WorkerCallbacks callbacks{[&](const StepProgress& progress) {
                                    trace.record_metrics(to_metrics(plan, progress));
                                    run_log.add(progress);
                                  },
                                  [&](const std::string& text) {
                                    if (!quiet) log->info(text);
                                  },
                                  [&](int peer, double offset_s, double error_s) {
                                    trace.record_clock({peer, offset_s, error_s});
                                  }};
  const WorkerResult result = run_worker(plan, worker, trace, clock, stop_flag(), callbacks);
  trace.close();
  if (last) run_log.write_result(options.out + "/result.json", result);
  if (result.interrupted) {
    if (!quiet) log->info("stopped after step {}; go on with --resume", result.steps_done);
    return int(ExitCode::interrupted);
  }
  return 0;
}

std::vector<Child> stage_processes(const TrainOptions& options, const std::vector<int>& stages,
                                   bool quiet) {
  std::vector<Child> children;
  for (const int stage : stages) {
    Child child{
        "stage " + std::to_string(stage) + " (" + options.cloud + ")",
        {"train", "--plan", options.plan, "--cloud", options.cloud, "--stage",
         std::to_string(stage), "--data", options.worker.data, "--out", options.out, "--keys",
         options.worker.keys, "--max-steps", std::to_string(options.worker.max_steps)}};
    auto& arguments = child.arguments;
    if (!options.worker.heldout.empty()) {
      arguments.insert(arguments.end(), {"--heldout", options.worker.heldout});
    }
    if (options.local) arguments.emplace_back("--local");
    if (options.emulate_wan) arguments.emplace_back("--emulate-wan");
    if (options.worker.resume) arguments.emplace_back("--resume");
    if (quiet) arguments.emplace_back("--quiet");
    children.push_back(std::move(child));
  }
  return children;
}

int run_train(const TrainOptions& options, const CommonOptions& common) {
  Plan plan = read_plan_file(options.plan);
  if (options.local) make_local(plan);
  const std::vector<int> stages = stages_of(plan, options.cloud);
  if (options.stage >= 0 &&
      std::find(stages.begin(), stages.end(), options.stage) == stages.end()) {
    throw InputError("--stage", "the plan does not put stage " + std::to_string(options.stage) +
                                    " in cloud '" + options.cloud + "'");
  }
  if (options.stage >= 0) return train_stage(plan, options, options.stage, common.quiet);
  if (stages.size() == 1) return train_stage(plan, options, stages.front(), common.quiet);
  return supervise(stage_processes(options, stages, common.quiet), stop_flag());
}

Command train_command() {
  auto options = std::make_shared<TrainOptions>();
  return {"train", "trains one cloud's part of a plan on this machine",
          "nebula-exec train --plan plan.json --cloud north --keys keys --data train.tok --out run",
          [options](po::options_description& list) {
            WorkerOptions& worker = options->worker;
            list.add_options()("plan", po::value(&options->plan)->required()->value_name("FILE"),
                               "plan to train by")(
                "cloud", po::value(&options->cloud)->required()->value_name("NAME"),
                "cloud that this machine is part of")(
                "stage", po::value(&options->stage)->value_name("N"),
                "only this stage of the cloud (default: all, one process each)")(
                "data", po::value(&worker.data)->required()->value_name("FILE"),
                "token file to train on")("heldout", po::value(&worker.heldout)->value_name("FILE"),
                                          "token file to evaluate on at the end")(
                "keys", po::value(&worker.keys)->default_value("keys")->value_name("FOLDER"),
                "authority.pem, CLOUD.pem and CLOUD.key, as made by nebula-exec keys")(
                "out", po::value(&options->out)->required()->value_name("FOLDER"),
                "folder for traces, checkpoints and result.json")(
                "resume", po::bool_switch(&worker.resume), "go on from the newest checkpoint")(
                "max-steps", po::value(&worker.max_steps)->value_name("N"),
                "stop after so many steps")(
                "connect-timeout",
                po::value(&worker.connect_timeout_s)->default_value(worker.connect_timeout_s),
                "seconds to wait for the other clouds to appear")(
                "message-timeout",
                po::value(&worker.message_timeout_s)->default_value(worker.message_timeout_s),
                "seconds to wait for a message before the run fails")(
                "local", po::bool_switch(&options->local), "all clouds are on this machine")(
                "emulate-wan", po::bool_switch(&options->emulate_wan),
                "hold frames back as the plan's links would");
          },
          [options](const CommonOptions& common) { return run_train(*options, common); }};
}

}  // namespace

int main(int argc, char** argv) {
  nebula::become_tokenizer(argc, argv);
  return nebula::run_program(
      {"nebula-exec",
       "trains by a plan, across clouds",
       {tokenize_command(), keys_command(), profile_command(), train_command(), launch_command()}},
      argc, argv);
}
