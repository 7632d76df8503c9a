#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "core/plan.hpp"
#include "core/timeline.hpp"
#include "exec/clock.hpp"

namespace nebula {

/// What one stage's process needs besides the plan.
struct WorkerOptions {
  int stage = 0;
  /// Token files; every cloud with the first or last stage has its own copy.
  std::string data;
  /// Empty: no evaluation.
  std::string heldout;
  /// Folder for checkpoints.
  std::string checkpoints;
  /// As made by make_keys(); not read when there is one stage.
  std::string keys;
  /// Hold frames back as the plan's links would, sharing this folder's files; empty: don't.
  std::string emulation_folder;
  bool resume = false;
  /// Stop after so many steps of this run; 0: run the job to its end.
  int max_steps = 0;
  double connect_timeout_s = 60;
  double message_timeout_s = 300;
};

/// What is known after each step; the same at every stage but for link_use.
struct StepProgress {
  int step = 0;
  double loss = 0;
  double grad_norm = 0;
  double learning_rate = 0;
  double step_s = 0;
  double tokens_per_s = 0;
  /// Over all stages.
  double bubble = 0;
  /// Of the line from the stage's predecessor, or to its successor on the first stage.
  double link_use = 0;
};

struct WorkerResult {
  int steps_done = 0;
  /// Somebody was asked to stop: the state is saved, training can go on with `resume`.
  bool interrupted = false;
  /// On the last stage, after a complete run with held-out text.
  std::optional<double> heldout_loss;
};

/// How a worker reports; called from its own thread, `log` from the transport's, too.
struct WorkerCallbacks {
  std::function<void(const StepProgress&)> on_step;
  std::function<void(const std::string&)> log;
  /// After connecting: stage and its clock minus ours, and the error of that, in seconds.
  std::function<void(int, double, double)> on_clock;
};

/// Trains one stage by the plan until the job is done, `stop` is set at any stage, or something
/// fails. Throws InputError (data, checkpoint) or RunError (peers, disk, divergence); peers are
/// told why.
WorkerResult run_worker(const Plan& plan, const WorkerOptions& options, EventSink& sink,
                        const Clock& clock, const std::atomic<bool>& stop,
                        const WorkerCallbacks& callbacks);

}  // namespace nebula
