#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "core/plan.hpp"
#include "exec/token_file.hpp"
#include "exec/worker.hpp"

namespace nebula {

/// A token file of random ids below the vocabulary, with some structure to learn.
void write_random_tokens(const std::string& path, int count, int vocabulary, unsigned seed);

/// Gives the plan's clouds addresses on loopback whose ports are free.
void use_free_ports(Plan& plan);

/// What a run of all stages leaves.
struct PipelineRun {
  std::vector<double> losses;
  /// After the first step, by parameter name.
  std::map<std::string, torch::Tensor> gradients;
  /// At the end.
  std::map<std::string, torch::Tensor> weights;
};

/// Runs `steps` steps of the plan with one thread a stage over TLS on loopback.
PipelineRun run_pipeline(Plan plan, const std::string& folder, const std::string& data, int steps);

/// The same training as a plain libtorch loop: one model, torch::optim::AdamW, clip_grad_norm_.
PipelineRun run_plain_loop(const Plan& plan, const std::string& data, int steps);

/// Runs run_worker for every stage in threads; progress of the last stage goes to on_step, which
/// may set the flag it is given. Throws what the first failing stage threw.
std::vector<WorkerResult> run_workers(
    Plan plan, WorkerOptions options, const std::string& folder,
    const std::function<void(const StepProgress&, std::atomic<bool>&)>& on_step);

}  // namespace nebula
