#include "tests/traces/fixture.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <random>
#include <stdexcept>

#include <stdlib.h>

#include "core/schedules.hpp"
#include "core/step_costs.hpp"

namespace nebula::test {
namespace {

/// Runs op lists stage by stage as far as messages allow, until all steps are done.
class Runner {
 public:
  Runner(const Plan& plan, const Costs& costs, const Noise& noise, double other_s)
      : shape_(plan.shape()),
        costs_(step_costs(plan, plan.cluster, costs)),
        noise_(noise),
        random_(noise.seed),
        other_s_(other_s),
        lists_(make_schedule(plan.schedule, shape_)),
        clock_(lists_.size(), 0.0),
        line_free_(costs_.lines.size(), 0.0) {}

  std::vector<Event> run(int steps) {
    for (int step = 0; step < steps; ++step) run_step(step);
    return std::move(events_);
  }

 private:
  void run_step(int step) {
    arrivals_.clear();
    for (int s = 0; s < shape_.stages; ++s) {
      Event event;
      event.kind = EventKind::prepare;
      spend(event, step, s, costs_.stages[std::size_t(s)].prepare_s);
      clock_[std::size_t(s)] += other_s_;
    }
    std::vector<std::size_t> next(lists_.size(), 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (int s = 0; s < shape_.stages; ++s)
        for (auto& i = next[std::size_t(s)];
             i < lists_[std::size_t(s)].size() && run_op(step, s, lists_[std::size_t(s)][i]); ++i)
          moved = true;
    }
    for (std::size_t s = 0; s < lists_.size(); ++s)
      if (next[s] != lists_[s].size()) throw std::logic_error("the schedule is stuck");
  }

  bool run_op(int step, int stage, const Op& op) {
    for (const Message& m : needs(shape_, stage, op))
      if (!arrivals_.contains(m)) return false;
    for (const Message& m : needs(shape_, stage, op)) receive(step, m);
    Event event;
    event.op = op;
    spend(event, step, stage, costs_.op_seconds(stage, op.kind));
    for (const Message& m : emits(shape_, stage, op)) send(step, m);
    return true;
  }

  void receive(int step, const Message& m) {
    Event event = about(EventKind::wait, m, m.from);
    event.step = step;
    event.stage = m.to;
    double& now = clock_[std::size_t(m.to)];
    event.start_s = now;
    event.end_s = now = std::max(now, arrivals_.at(m));
    if (event.end_s > event.start_s) events_.push_back(event);
    const double seconds = costs_.channel(m).decode_s;
    if (seconds > 0) spend(about(EventKind::decode, m, m.from), step, m.to, seconds);
  }

  void send(int step, const Message& m) {
    const ChannelCosts& channel = costs_.channel(m);
    if (channel.encode_s > 0)
      spend(about(EventKind::encode, m, m.to), step, m.from, channel.encode_s);
    Event event = about(EventKind::transfer, m, m.from);
    event.step = step;
    event.stage = m.to;
    event.bytes = channel.bytes;
    event.start_s = clock_[std::size_t(m.from)];
    double& free_s = line_free_[std::size_t(channel.line)];
    const double rate = costs_.lines[std::size_t(channel.line)].rate_bytes_per_s;
    free_s = std::max(free_s, event.start_s) + channel.bytes / rate * jitter();
    event.end_s = free_s + channel.latency_s;
    events_.push_back(event);
    arrivals_[m] = event.end_s;
  }

  static Event about(EventKind kind, const Message& m, int peer) {
    Event event;
    event.kind = kind;
    event.message = m.kind;
    event.peer = peer;
    event.micro_batch = m.micro_batch;
    return event;
  }

  void spend(Event event, int step, int stage, double seconds) {
    event.step = step;
    event.stage = stage;
    event.start_s = clock_[std::size_t(stage)];
    const bool straggles = uniform_(random_) < noise_.stragglers;
    clock_[std::size_t(stage)] += seconds * jitter() * (straggles ? 10 : 1);
    event.end_s = clock_[std::size_t(stage)];
    events_.push_back(event);
  }

  double jitter() { return std::exp(noise_.relative * normal_(random_)); }

  Shape shape_;
  StepCosts costs_;
  Noise noise_;
  std::mt19937_64 random_;
  std::normal_distribution<double> normal_;
  std::uniform_real_distribution<double> uniform_;
  double other_s_;
  OpLists lists_;
  std::vector<double> clock_;
  std::vector<double> line_free_;
  std::map<Message, double> arrivals_;
  std::vector<Event> events_;
};

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "nebula-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Plan make_plan(const std::vector<int>& layers, const std::vector<std::string>& devices) {
  Plan plan;
  plan.model.name = "tiny";
  plan.model.blocks = 8;
  plan.model.width = 64;
  plan.model.heads = plan.model.kv_heads = 4;
  plan.model.feedforward_width = 256;
  plan.model.vocabulary = 1024;
  plan.model.max_positions = 128;
  plan.job.name = "test";
  plan.job.sequence_length = 64;
  plan.job.global_batch = 16;
  plan.job.steps = 10;
  plan.micro_batch = 2;
  plan.micro_batches = 8;
  int first = 0;
  for (std::size_t s = 0; s < layers.size(); ++s) {
    Cloud cloud;
    cloud.name = "c" + std::to_string(s);
    cloud.devices = {{devices[s], 1}};
    plan.cluster.clouds.push_back(cloud);
    if (!plan.cluster.find_device(devices[s])) {
      Device device;
      device.kind = devices[s];
      device.peak_flops_per_s = 1e11 * double(s + 1);
      device.memory_bytes = 8e9;
      device.threads = 1;
      plan.cluster.devices.push_back(device);
    }
    StagePlan stage;
    stage.cloud = cloud.name;
    stage.device = devices[s];
    stage.first_layer = first;
    stage.last_layer = first += layers[s];
    plan.stages.push_back(stage);
  }
  for (int s = 0; s + 1 < plan.stage_count(); ++s) {
    const std::string a = "c" + std::to_string(s);
    const std::string b = "c" + std::to_string(s + 1);
    plan.cluster.links.push_back({a, b, 12.5e6, 15e-3, 0, {}, "assumed"});
    plan.cluster.links.push_back({b, a, 12.5e6, 15e-3, 0, {}, "assumed"});
    BoundaryPlan boundary;
    boundary.from = s;
    boundary.to = s + 1;
    boundary.forward.name = "int8";
    boundary.backward.name = "bf16";
    plan.boundaries.push_back(boundary);
  }
  plan.schedule = one_f_one_b(plan.shape());
  validate(plan, "fixture");
  return plan;
}

std::vector<Event> run_plan(const Plan& plan, const Costs& costs, int steps, const Noise& noise,
                            double other_s) {
  return Runner(plan, costs, noise, other_s).run(steps);
}

}  // namespace nebula::test
