#include "planner/bounds.hpp"

#include <algorithm>

namespace nebula {
namespace {

double occupancy_s(const StepCosts& costs, const ChannelCosts& channel) {
  if (channel.line < 0) return 0;
  double rate = costs.lines[std::size_t(channel.line)].rate_bytes_per_s;
  if (channel.connection_bytes_per_s > 0) {
    rate = std::min(rate, channel.connection_bytes_per_s * channel.connections);
  }
  return channel.bytes / rate;
}

// Encoded, sent, arrived, decoded.
double hop_s(const StepCosts& costs, const ChannelCosts& channel) {
  return channel.encode_s + occupancy_s(costs, channel) + channel.latency_s + channel.decode_s;
}

class Bound {
 public:
  Bound(const StepCosts& costs, const ScheduleSettings& schedule)
      : costs_(costs),
        schedule_(schedule),
        p_(std::size_t(costs.shape.stages)),
        m_(costs.shape.micro_batches),
        fill_(p_ + 1),
        drain_(p_ + 1) {
    // fill_[s]: from the start of the first forward to that of stage s's; drain_[s]: from the end
    // of stage s's last backward to the end of the last backward.
    for (std::size_t s = 0; s + 1 < p_; ++s) {
      fill_[s + 1] = fill_[s] + costs_.stages[s].forward_s + hop_s(costs_, costs_.forward[s]);
      drain_[s + 1] = drain_[s] + costs_.stages[s].backward_s + hop_s(costs_, costs_.backward[s]);
    }
    const StageCosts& first = costs_.stages.front();
    const StageCosts& last = costs_.stages.back();
    // What stage 0 does around its forwards and backwards.
    around_ = first.prepare_s + first.norm_s + first.update_s;
    round_trip_ = fill_[p_ - 1] + last.forward_s + last.backward_s + drain_[p_ - 1];
  }

  double value() const {
    double bound = around_ + round_trip_;
    for (std::size_t s = 0; s < p_; ++s) {
      bound = std::max({bound, stage_bound(s), in_flight_bound(s)});
    }
    for (std::size_t b = 0; b + 1 < p_; ++b) {
      bound = std::max({bound, forward_bound(b), backward_bound(b)});
    }
    return bound;
  }

 private:
  double stage_bound(std::size_t s) const {
    const StageCosts& stage = costs_.stages[s];
    double work = m_ * (stage.forward_s + stage.backward_s);
    if (s > 0)
      work += (m_ - 1) * (costs_.forward[s - 1].decode_s + costs_.backward[s - 1].encode_s);
    if (s + 1 < p_) work += m_ * (costs_.forward[s].encode_s + costs_.backward[s].decode_s);
    return around_ + fill_[s] + work + drain_[s];
  }

  double in_flight_bound(std::size_t s) const {
    const int depth = in_flight(schedule_, costs_.shape, int(s));
    const double cycle = round_trip_ - fill_[s] - drain_[s];
    const int rounds = (m_ - 1) / depth + 1;
    return around_ + fill_[s] + drain_[s] + rounds * cycle;
  }

  double forward_bound(std::size_t b) const {
    return around_ + round_trip_ + (m_ - 1) * occupancy_s(costs_, costs_.forward[b]);
  }

  double backward_bound(std::size_t b) const {
    return around_ + round_trip_ + (m_ - 1) * occupancy_s(costs_, costs_.backward[b]);
  }

  const StepCosts& costs_;
  const ScheduleSettings& schedule_;
  std::size_t p_;
  int m_;
  std::vector<double> fill_;
  std::vector<double> drain_;
  double around_ = 0;
  double round_trip_ = 0;
};

}  // namespace

double step_lower_bound(const StepCosts& costs, const ScheduleSettings& schedule) {
  // The simulator adds the same numbers in another order.
  constexpr double rounding = 1 - 1e-9;
  return Bound(costs, schedule).value() * rounding;
}

}  // namespace nebula
