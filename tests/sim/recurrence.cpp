#include "tests/sim/recurrence.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace nebula::test {
namespace {

using Key = std::array<int, 4>;  // kind, sender, micro-batch, step

enum Kind { forward_message, backward_message, sum_message, total_message, table_message };

class Recurrence {
 public:
  Recurrence(const StepCosts& costs, const ScheduleSettings& schedule, int steps)
      : costs_(costs), stages_(costs.shape.stages), clocks_(std::size_t(stages_), 0) {
    for (int s = 0; s < stages_; ++s) {
      std::vector<OpEnd> list;
      for (int step = 0; step < steps; ++step) add_step(list, schedule, s, step);
      lists_.push_back(std::move(list));
    }
  }

  std::vector<OpEnd> run() {
    std::vector<std::size_t> next(std::size_t(stages_), 0);
    std::vector<OpEnd> done;
    for (bool moved = true; moved;) {
      moved = false;
      for (std::size_t s = 0; s < next.size(); ++s) {
        while (next[s] < lists_[s].size() && try_op(lists_[s][next[s]])) {
          done.push_back(lists_[s][next[s]++]);
          moved = true;
        }
      }
    }
    return done;
  }

 private:
  void add_step(std::vector<OpEnd>& list, const ScheduleSettings& schedule, int stage, int step) {
    const int m = costs_.shape.micro_batches;
    const auto add = [&](OpKind kind, int i = 0) {
      list.push_back({step, stage, {kind, i, 0}, 0});
    };
    const int depth = schedule.kind == ScheduleKind::gpipe
                          ? m
                          : std::min(m, schedule.in_flight[std::size_t(stage)]);
    for (int i = 0; i < depth; ++i) add(OpKind::forward, i);
    for (int i = 0; i < m; ++i) {
      add(OpKind::backward, i);
      if (i + depth < m) add(OpKind::forward, i + depth);
    }
    const bool ties = costs_.shape.tied && stages_ > 1;
    if (ties && stage == 0) {
      add(OpKind::tie_send);
      add(OpKind::tie_receive);
    }
    if (ties && stage == stages_ - 1) add(OpKind::tie_send);
    add(OpKind::sum_norm);
    if (ties && stage == stages_ - 1) add(OpKind::tie_receive);
    if (stage > 0) add(OpKind::share_norm);
    add(OpKind::update);
  }

  // Arrival of what the op waits for; nothing while it is still to come.
  bool try_op(OpEnd& item) {
    const int s = item.stage;
    const int i = item.op.micro_batch;
    const bool last = s == stages_ - 1;
    const auto b = std::size_t(s);
    double& clock = clocks_[b];
    const StageCosts& stage = costs_.stages[b];
    std::optional<std::pair<Key, const ChannelCosts*>> wanted;
    switch (item.op.kind) {
      case OpKind::forward:
        if (s > 0) wanted = {{forward_message, s - 1, i, item.step}, &costs_.forward[b - 1]};
        break;
      case OpKind::backward:
        if (!last) wanted = {{backward_message, s + 1, i, item.step}, &costs_.backward[b]};
        break;
      case OpKind::sum_norm:
        if (!last) wanted = {{sum_message, s + 1, 0, item.step}, &costs_.norm_backward[b]};
        break;
      case OpKind::share_norm:
        wanted = {{total_message, s - 1, 0, item.step}, &costs_.norm_forward[b - 1]};
        break;
      case OpKind::tie_receive:
        wanted = {{table_message, s == 0 ? stages_ - 1 : 0, 0, item.step},
                  s == 0 ? &costs_.tied_backward : &costs_.tied_forward};
        break;
      default:
        break;
    }
    if (wanted && !arrivals_.contains(wanted->first)) return false;
    const bool first_of_step = item.op == Op{OpKind::forward, 0, 0};
    if (first_of_step) clock += stage.prepare_s;
    if (wanted) clock = std::max(clock, arrivals_[wanted->first]) + wanted->second->decode_s;
    switch (item.op.kind) {
      case OpKind::forward:
        clock += stage.forward_s;
        break;
      case OpKind::backward:
        clock += stage.backward_s;
        break;
      case OpKind::sum_norm:
        clock += stage.norm_s;
        break;
      case OpKind::update:
        clock += stage.update_s;
        break;
      default:
        break;
    }
    item.end_s = clock;
    if (item.op.kind == OpKind::forward && !last) {
      send({forward_message, s, i, item.step}, s + 1, costs_.forward[b]);
    }
    if (item.op.kind == OpKind::backward && s > 0) {
      send({backward_message, s, i, item.step}, s - 1, costs_.backward[b - 1]);
    }
    if (item.op.kind == OpKind::sum_norm && s > 0) {
      send({sum_message, s, 0, item.step}, s - 1, costs_.norm_backward[b - 1]);
    }
    const bool turns = item.op.kind == OpKind::sum_norm && s == 0;
    if ((turns || item.op.kind == OpKind::share_norm) && !last) {
      send({total_message, s, 0, item.step}, s + 1, costs_.norm_forward[b]);
    }
    if (item.op.kind == OpKind::tie_send) {
      send({table_message, s, 0, item.step}, s == 0 ? stages_ - 1 : 0,
           s == 0 ? costs_.tied_forward : costs_.tied_backward);
    }
    return true;
  }

  void send(const Key& key, int to, const ChannelCosts& channel) {
    double& clock = clocks_[std::size_t(key[1])];
    clock += channel.encode_s;
    double left = clock;
    if (channel.line >= 0 && channel.bytes > 0) {
      double rate = costs_.lines[std::size_t(channel.line)].rate_bytes_per_s;
      if (channel.connection_bytes_per_s > 0) {
        rate = std::min(rate, channel.connections * channel.connection_bytes_per_s);
      }
      double& free = free_[{key[1], to}];
      free = std::max(free, clock) + channel.bytes / rate;
      left = free;
    }
    arrivals_[key] = left + channel.latency_s;
  }

  const StepCosts& costs_;
  int stages_;
  std::vector<double> clocks_;
  std::vector<std::vector<OpEnd>> lists_;
  std::map<Key, double> arrivals_;
  std::map<std::pair<int, int>, double> free_;
};

}  // namespace

std::vector<OpEnd> recurrence(const StepCosts& costs, const ScheduleSettings& schedule, int steps) {
  return Recurrence(costs, schedule, steps).run();
}

}  // namespace nebula::test
