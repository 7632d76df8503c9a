#pragma once

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/schedules.hpp"
#include "sim/simulate.hpp"

namespace nebula::test {

/// Random numbers of a test: seeded, so that a failure comes back.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : engine_(seed) {}

  int whole(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(engine_);
  }
  double real(double least, double most) {
    return std::uniform_real_distribution<double>(least, most)(engine_);
  }
  bool chance(double share) { return real(0, 1) < share; }
  /// Spread evenly over the orders of magnitude; sometimes nothing.
  double seconds(double least, double most) {
    return chance(0.1) ? 0 : std::exp(real(std::log(least), std::log(most)));
  }

 private:
  std::mt19937_64 engine_;
};

/// Equal stages joined by lines of their own, one each way, that nothing crosses for free.
inline StepCosts plain_costs(int stages, int micro_batches, double forward_s, double backward_s,
                             double occupancy_s = 0, double latency_s = 0) {
  StepCosts costs;
  costs.shape = {stages, micro_batches, 1, false};
  costs.stages.resize(std::size_t(stages), {forward_s, backward_s, 0, 0, 0});
  ChannelCosts nothing;
  for (int s = 0; s + 1 < stages; ++s) {
    ChannelCosts channel;
    channel.bytes = occupancy_s * 1e6;
    channel.latency_s = latency_s;
    channel.line = 2 * s;
    costs.forward.push_back(channel);
    channel.line = 2 * s + 1;
    costs.backward.push_back(channel);
    costs.norm_forward.push_back(nothing);
    costs.norm_backward.push_back(nothing);
    costs.lines.push_back({"there", 1e6});
    costs.lines.push_back({"back", 1e6});
  }
  return costs;
}

inline ChannelCosts random_channel(Dice& dice, int line, const std::vector<double>& windows) {
  ChannelCosts channel;
  channel.bytes = dice.seconds(1e2, 1e7);
  channel.encode_s = dice.chance(0.5) ? dice.seconds(1e-5, 1e-2) : 0;
  channel.decode_s = dice.chance(0.5) ? dice.seconds(1e-5, 1e-2) : 0;
  channel.latency_s = dice.seconds(1e-5, 1);
  channel.line = dice.chance(0.1) ? -1 : line;
  channel.connections = dice.chance(0.3) ? dice.whole(2, 6) : 1;
  channel.connection_bytes_per_s = windows[std::size_t(line)];
  return channel;
}

/// Any stages, any channels. With `shared`, all boundaries use the same two lines.
inline StepCosts random_costs(Dice& dice, int stages, int micro_batches, bool shared) {
  StepCosts costs;
  costs.shape = {stages, micro_batches, 1, dice.chance(0.3)};
  for (int s = 0; s < stages; ++s) {
    costs.stages.push_back({dice.seconds(1e-4, 1), dice.seconds(1e-4, 1), dice.seconds(1e-4, 0.1),
                            dice.seconds(1e-5, 1e-2), dice.seconds(1e-5, 1e-2)});
  }
  std::vector<double> windows;
  const int pairs = shared ? 1 : std::max(1, stages - 1);
  for (int i = 0; i < 2 * pairs + 2; ++i) {
    costs.lines.push_back({"line" + std::to_string(i), std::exp(dice.real(9, 20))});
    windows.push_back(dice.chance(0.3) ? std::exp(dice.real(9, 20)) : 0);
  }
  for (int s = 0; s + 1 < stages; ++s) {
    const int line = shared ? 0 : 2 * s;
    costs.forward.push_back(random_channel(dice, line, windows));
    costs.backward.push_back(random_channel(dice, line + 1, windows));
    costs.norm_forward.push_back(random_channel(dice, line, windows));
    costs.norm_backward.push_back(random_channel(dice, line + 1, windows));
  }
  const int own = shared || stages == 2 ? 0 : 2 * pairs;
  costs.tied_forward = random_channel(dice, own, windows);
  costs.tied_backward = random_channel(dice, own + 1, windows);
  return costs;
}

/// GPipe, or 1F1B with random depths that do not grow along the pipeline.
inline ScheduleSettings random_schedule(Dice& dice, const Shape& shape) {
  if (dice.chance(0.3)) return gpipe();
  ScheduleSettings settings;
  int depth = dice.whole(1, shape.micro_batches + 2);
  for (int s = 0; s < shape.stages; ++s) {
    settings.in_flight.push_back(depth);
    depth = dice.whole(1, depth);
  }
  return settings;
}

inline double makespan(const Simulation& simulation) {
  double end = 0;
  for (const Event& event : simulation.events) end = std::max(end, event.end_s);
  return end;
}

}  // namespace nebula::test
