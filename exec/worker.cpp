#include "exec/worker.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "core/error.hpp"
#include "core/run_stage.hpp"
#include "exec/batches.hpp"
#include "exec/checkpoint.hpp"
#include "exec/exec_world.hpp"
#include "exec/torch_compat.hpp"

namespace nebula {
namespace {

Endpoint endpoint(const Plan& plan, int stage) {
  const StagePlan& planned = plan.stages[std::size_t(stage)];
  const Cloud* cloud = plan.cluster.find_cloud(planned.cloud);
  return {stage, planned.cloud, cloud->host, cloud->port + stage};
}

PeerOptions peer(const Plan& plan, const WorkerOptions& options, int stage, int connections) {
  PeerOptions result{endpoint(plan, stage), connections, std::nullopt};
  const std::string& from = plan.stages[std::size_t(options.stage)].cloud;
  const std::string& to = plan.stages[std::size_t(stage)].cloud;
  if (options.emulation_folder.empty() || from == to) return result;
  const Link* link = plan.cluster.find_link(from, to);
  result.emulation = LinkEmulation{link->rate_bytes_per_s, link->latency_s,
                                   options.emulation_folder + "/" + from + "-" + to + ".line"};
  return result;
}

std::vector<PeerOptions> peers(const Plan& plan, const WorkerOptions& options) {
  const int last = plan.stage_count() - 1;
  std::vector<PeerOptions> result;
  for (const BoundaryPlan& boundary : plan.boundaries) {
    if (boundary.from == options.stage) {
      result.push_back(peer(plan, options, boundary.to, boundary.connections));
    }
    if (boundary.to == options.stage) {
      result.push_back(peer(plan, options, boundary.from, boundary.connections));
    }
  }
  const bool at_end = options.stage == 0 || options.stage == last;
  if (plan.ties_stages() && at_end && last > 1) {
    result.push_back(peer(plan, options, options.stage == 0 ? last : 0, 1));
  }
  return result;
}

void check_executable(const Plan& plan) {
  for (const StagePlan& stage : plan.stages) {
    if (stage.replicas > 1) throw RunError("this version runs one replica a stage");
    if (stage.recompute) throw RunError("this version does not recompute activations");
    if (stage.part != "model") throw RunError("this version runs plans of one model");
  }
  for (const BoundaryPlan& boundary : plan.boundaries) {
    if (boundary.payload != Payload::activations || !boundary.returns_gradient) {
      throw RunError("this version runs boundaries of activations and gradients only");
    }
  }
}

// One stage's run, from connecting to the last checkpoint.
class Worker {
 public:
  Worker(const Plan& plan, const WorkerOptions& options, EventSink& sink, const Clock& clock,
         const std::atomic<bool>& stop, const WorkerCallbacks& callbacks)
      : plan_(plan),
        options_(options),
        sink_(sink),
        clock_(clock),
        callbacks_(callbacks),
        stage_(plan.stages[std::size_t(options.stage)]),
        module_(plan.model, stage_.first_layer, stage_.last_layer, plan.job.seed,
                torch_device(stage_.threads)),
        optimizer_(plan.job.optimizer, module_.parameters()),
        checkpoint_{options.checkpoints, options.stage, plan_hash(plan)},
        data_(TokenFile(options.data), plan.job, plan.model) {
    if (!options.heldout.empty())
      heldout_.emplace(TokenFile(options.heldout), plan.job, plan.model);
    if (options.resume) resume();
    if (plan.stage_count() > 1) transport_.emplace(transport_options());
    world_.emplace(WorldParts{plan_, options_.stage, module_, optimizer_,
                              transport_ ? &*transport_ : nullptr, sink_, clock_, stop});
  }

  WorkerResult run() {
    if (!transport_) return train();
    try {
      transport_->connect();
      if (callbacks_.on_clock) {
        for (const PeerStats& peer : transport_->stats()) {
          callbacks_.on_clock(peer.stage, peer.clock_offset_s, peer.rtt_s / 2);
        }
      }
      WorkerResult result = train();
      transport_->close();
      return result;
    } catch (const std::exception& error) {
      transport_->abort(error.what());
      throw;
    }
  }

 private:
  TransportOptions transport_options() const {
    TransportOptions result;
    result.own = endpoint(plan_, options_.stage);
    result.peers = peers(plan_, options_);
    result.key_folder = options_.keys;
    result.plan_hash = plan_hash(plan_);
    result.data_hash = data_.file().fingerprint();
    result.start_step = step_;
    result.connect_timeout_s = options_.connect_timeout_s;
    result.message_timeout_s = options_.message_timeout_s;
    if (callbacks_.log) {
      result.log = [log = callbacks_.log](LogLevel, const std::string& text) { log(text); };
    }
    return result;
  }

  void resume() {
    const auto newest = newest_checkpoint(checkpoint_);
    if (!newest) {
      throw InputError(
          options_.checkpoints,
          "holds no checkpoint of stage " + std::to_string(options_.stage) + " to resume from");
    }
    step_ = *newest;
    saved_ = step_;
    load_checkpoint(checkpoint_, step_, module_, optimizer_);
  }

  WorkerResult train() {
    const OpLists lists = make_schedule(plan_.schedule, plan_.shape());
    const int end = options_.max_steps > 0 ? std::min(plan_.job.steps, step_ + options_.max_steps)
                                           : plan_.job.steps;
    bool stop = false;
    while (step_ < end && !stop) {
      const double start_s = clock_.now();
      const bool reads = module_.first_stage() || module_.last_stage();
      world_->begin_step(step_, reads ? data_.training(step_, 0, plan_.job.global_batch) : Batch{});
      run_stage(plan_.shape(), options_.stage, lists[std::size_t(options_.stage)], *world_);
      report_progress(clock_.now() - start_s);
      stop = world_->report().stop != 0;
      ++step_;
      const int every = plan_.job.checkpoint_every;
      if (every > 0 && step_ % every == 0) save();
    }
    if (saved_ != step_) save();
    WorkerResult result{step_, stop && step_ < plan_.job.steps, std::nullopt};
    if (heldout_ && !result.interrupted && step_ == plan_.job.steps) {
      result.heldout_loss = evaluate();
    }
    return result;
  }

  void report_progress(double step_s) {
    if (!callbacks_.on_step) return;
    const StepReport& report = world_->report();
    StepProgress progress;
    progress.step = step_;
    progress.loss = report.loss;
    progress.grad_norm = std::sqrt(report.squared_norm);
    progress.learning_rate = learning_rate(plan_.job.optimizer, step_, plan_.job.steps);
    progress.step_s = step_s;
    progress.tokens_per_s = plan_.job.tokens_per_step() / step_s;
    progress.bubble = 1 - report.busy_s / (step_s * plan_.stage_count());
    progress.link_use = link_use(step_s);
    callbacks_.on_step(progress);
  }

  double link_use(double step_s) const {
    if (!transport_) return 0;
    const int neighbour = options_.stage > 0 ? options_.stage - 1 : 1;
    const std::string& from = plan_.stages[std::size_t(neighbour)].cloud;
    const Link* link = plan_.cluster.find_link(from, stage_.cloud);
    return link ? world_->received_bytes() / (link->rate_bytes_per_s * step_s) : 0;
  }

  void save() {
    Event event{.kind = EventKind::save, .step = step_, .stage = options_.stage};
    event.start_s = clock_.now();
    save_checkpoint(checkpoint_, step_, module_, optimizer_);
    event.end_s = clock_.now();
    sink_.record(event);
    saved_ = step_;
  }

  // Messages of the evaluation are numbered like one more step.
  std::optional<double> evaluate() {
    const int sequences = plan_.job.heldout_sequences;
    if (sequences == 0) return std::nullopt;
    Event event{.kind = EventKind::evaluate, .step = step_, .stage = options_.stage};
    event.start_s = clock_.now();
    Shape shape = plan_.shape();
    shape.micro_batches = (sequences + plan_.micro_batch - 1) / plan_.micro_batch;
    world_->begin_evaluation(step_, heldout_->heldout(0, sequences, sequences), sequences);
    const OpLists lists = forward_only(shape);
    run_stage(shape, options_.stage, lists[std::size_t(options_.stage)], *world_);
    event.end_s = clock_.now();
    sink_.record(event);
    if (!module_.last_stage()) return std::nullopt;
    return world_->evaluated_loss() / double(std::max<std::int64_t>(1, world_->evaluated_tokens()));
  }

  const Plan& plan_;
  const WorkerOptions& options_;
  EventSink& sink_;
  const Clock& clock_;
  const WorkerCallbacks& callbacks_;
  const StagePlan& stage_;
  StageModule module_;
  AdamW optimizer_;
  CheckpointKey checkpoint_;
  Batches data_;
  std::optional<Batches> heldout_;
  std::optional<Transport> transport_;
  std::optional<ExecWorld> world_;
  int step_ = 0;
  int saved_ = -1;
};

}  // namespace

WorkerResult run_worker(const Plan& plan, const WorkerOptions& options, EventSink& sink,
                        const Clock& clock, const std::atomic<bool>& stop,
                        const WorkerCallbacks& callbacks) {
  check_executable(plan);
  Worker worker(plan, options, sink, clock, stop, callbacks);
  return worker.run();
}

}  // namespace nebula
