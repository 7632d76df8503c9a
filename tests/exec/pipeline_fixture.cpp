#include "tests/exec/pipeline_fixture.hpp"

#include <exception>
#include <filesystem>
#include <mutex>
#include <random>
#include <thread>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/run_stage.hpp"
#include "exec/certificates.hpp"
#include "exec/exec_world.hpp"

namespace nebula {
namespace {

// Holds all ports of a run at once, so that they differ, and lets go of them together.
std::vector<int> free_ports(int count) {
  std::vector<int> sockets;
  std::vector<int> ports;
  for (int i = 0; i < count; ++i) {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    bind(fd, reinterpret_cast<sockaddr*>(&address), size);
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    sockets.push_back(fd);
    ports.push_back(ntohs(address.sin_port));
  }
  for (const int fd : sockets) close(fd);
  return ports;
}

std::string make_test_keys(const Plan& plan, const std::string& folder) {
  const std::string keys = folder + "/keys-" + std::to_string(plan.cluster.clouds.size());
  if (std::filesystem::exists(keys)) return keys;
  std::vector<std::string> clouds;
  for (const Cloud& cloud : plan.cluster.clouds) clouds.push_back(cloud.name);
  make_keys(keys, clouds);
  return keys;
}

// Runs f(stage) in a thread for each stage and throws what the first to fail threw.
void for_each_stage(int stages, const std::function<void(int)>& f) {
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::exception_ptr failure;
  for (int stage = 0; stage < stages; ++stage) {
    threads.emplace_back([&, stage] {
      try {
        f(stage);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

Endpoint endpoint(const Plan& plan, int stage) {
  const std::string& name = plan.stages[std::size_t(stage)].cloud;
  return {stage, name, "127.0.0.1", plan.cluster.find_cloud(name)->port + stage};
}

TransportOptions transport_options(const Plan& plan, int stage, const std::string& keys) {
  TransportOptions options;
  options.own = endpoint(plan, stage);
  const int last = plan.stage_count() - 1;
  for (int other = 0; other <= last; ++other) {
    const bool neighbour = other == stage - 1 || other == stage + 1;
    const bool other_end = plan.ties_stages() && last > 1 &&
                           ((stage == 0 && other == last) || (stage == last && other == 0));
    if (neighbour || other_end) options.peers.push_back({endpoint(plan, other), 1, std::nullopt});
  }
  options.key_folder = keys;
  options.plan_hash = plan_hash(plan);
  return options;
}

void copy_gradients(const std::vector<Parameter>& parameters, PipelineRun& run) {
  for (const Parameter& p : parameters) run.gradients[p.name] = p.tensor.grad().clone();
}

void copy_weights(const std::vector<Parameter>& parameters, PipelineRun& run) {
  for (const Parameter& p : parameters) run.weights[p.name] = p.tensor.detach().clone();
}

}  // namespace

void write_random_tokens(const std::string& path, int count, int vocabulary, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> ids{0};
  while (int(ids.size()) < count) {
    // Half of the tokens follow from the one before.
    ids.push_back(random() % 2 ? (ids.back() * 7 + 3) % vocabulary
                               : int(random() % unsigned(vocabulary)));
  }
  write_token_file(path, ids, vocabulary);
}

void use_free_ports(Plan& plan) {
  const auto ports = free_ports(plan.stage_count());
  for (int stage = 0; stage < plan.stage_count(); ++stage) {
    for (Cloud& cloud : plan.cluster.clouds) {
      if (cloud.name != plan.stages[std::size_t(stage)].cloud) continue;
      cloud.host = "127.0.0.1";
      cloud.port = ports[std::size_t(stage)] - stage;
    }
  }
}

PipelineRun run_pipeline(Plan plan, const std::string& folder, const std::string& data, int steps) {
  use_free_ports(plan);
  const std::string keys = make_test_keys(plan, folder);
  const OpLists lists = make_schedule(plan.schedule, plan.shape());
  PipelineRun run;
  std::mutex mutex;
  const std::atomic<bool> stop{false};
  for_each_stage(plan.stage_count(), [&](int stage) {
    const StagePlan& planned = plan.stages[std::size_t(stage)];
    StageModule module(plan.model, planned.first_layer, planned.last_layer, plan.job.seed,
                       torch::kCPU);
    AdamW optimizer(plan.job.optimizer, module.parameters());
    const Batches batches(TokenFile(data), plan.job, plan.model);
    std::optional<Transport> transport;
    if (plan.stage_count() > 1) {
      transport.emplace(transport_options(plan, stage, keys));
      transport->connect();
    }
    Timeline timeline;
    ExecWorld world({plan, stage, module, optimizer, transport ? &*transport : nullptr, timeline,
                     Clock{}, stop});
    for (int step = 0; step < steps; ++step) {
      world.begin_step(step, batches.training(step, 0, plan.job.global_batch));
      run_stage(plan.shape(), stage, lists[std::size_t(stage)], world);
      const std::lock_guard lock(mutex);
      if (step == 0) copy_gradients(module.parameters(), run);
      if (stage == 0) run.losses.push_back(world.report().loss);
    }
    if (transport) transport->close();
    const std::lock_guard lock(mutex);
    copy_weights(module.parameters(), run);
  });
  return run;
}

PipelineRun run_plain_loop(const Plan& plan, const std::string& data, int steps) {
  StageModule module(plan.model, 0, plan.model.layer_count(), plan.job.seed, torch::kCPU);
  const Optimizer& settings = plan.job.optimizer;
  std::vector<torch::Tensor> all;
  std::vector<torch::Tensor> decayed;
  std::vector<torch::Tensor> others;
  for (const Parameter& p : module.parameters()) {
    all.push_back(p.tensor);
    (p.tensor.dim() >= 2 ? decayed : others).push_back(p.tensor);
  }
  const auto options = [&](double decay) {
    return std::make_unique<torch::optim::AdamWOptions>(
        torch::optim::AdamWOptions(settings.learning_rate)
            .betas({settings.beta1, settings.beta2})
            .eps(settings.epsilon)
            .weight_decay(decay));
  };
  torch::optim::AdamW optimizer(std::vector<torch::optim::OptimizerParamGroup>{
      {decayed, options(settings.weight_decay)}, {others, options(0)}});
  const Batches batches(TokenFile(data), plan.job, plan.model);
  PipelineRun run;
  for (int step = 0; step < steps; ++step) {
    for (auto& group : optimizer.param_groups()) {
      static_cast<torch::optim::AdamWOptions&>(group.options())
          .lr(learning_rate(settings, step, plan.job.steps));
    }
    optimizer.zero_grad();
    const Batch batch = batches.training(step, 0, plan.job.global_batch);
    const torch::Tensor logits = module.forward(batch.inputs, Precision::float32);
    auto cross_entropy = torch::nn::functional::CrossEntropyFuncOptions();
    if (plan.job.ignored_token >= 0) cross_entropy.ignore_index(plan.job.ignored_token);
    const torch::Tensor loss = torch::nn::functional::cross_entropy(
        logits.flatten(0, 1), batch.targets.flatten(), cross_entropy);
    loss.backward();
    if (step == 0) copy_gradients(module.parameters(), run);
    if (settings.clip_norm > 0) torch::nn::utils::clip_grad_norm_(all, settings.clip_norm);
    optimizer.step();
    run.losses.push_back(loss.item<double>());
  }
  copy_weights(module.parameters(), run);
  return run;
}

std::vector<WorkerResult> run_workers(
    Plan plan, WorkerOptions options, const std::string& folder,
    const std::function<void(const StepProgress&, std::atomic<bool>&)>& on_step) {
  use_free_ports(plan);
  options.keys = make_test_keys(plan, folder);
  options.checkpoints = folder + "/checkpoints";
  std::vector<WorkerResult> results(plan.stages.size());
  std::atomic<bool> stop{false};
  const Clock clock;
  for_each_stage(plan.stage_count(), [&](int stage) {
    WorkerOptions own = options;
    own.stage = stage;
    Timeline timeline;
    WorkerCallbacks callbacks;
    if (stage == plan.stage_count() - 1) {
      callbacks.on_step = [&](const StepProgress& progress) { on_step(progress, stop); };
    }
    results[std::size_t(stage)] = run_worker(plan, own, timeline, clock, stop, callbacks);
  });
  return results;
}

}  // namespace nebula
