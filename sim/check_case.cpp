#include "sim/check_case.hpp"

#include <cmath>
#include <string>

#include "core/error.hpp"

namespace nebula {
namespace {

const std::string where = "simulation";

void check_amount(double value, const std::string& what) {
  if (std::isfinite(value) && value >= 0) return;
  throw InputError(
      where, what + " is " + std::to_string(value) + ", expected a finite number of at least 0");
}

void check_size(std::size_t size, std::size_t expected, const std::string& what) {
  if (size == expected) return;
  throw InputError(where, "there are " + std::to_string(size) + " " + what + ", expected " +
                              std::to_string(expected));
}

void check_stage(const StageCosts& stage, int index) {
  const std::string of = " of stage " + std::to_string(index);
  check_amount(stage.forward_s, "forward_s" + of);
  check_amount(stage.backward_s, "backward_s" + of);
  check_amount(stage.update_s, "update_s" + of);
  check_amount(stage.norm_s, "norm_s" + of);
  check_amount(stage.prepare_s, "prepare_s" + of);
}

void check_channel(const ChannelCosts& channel, const std::vector<Line>& lines,
                   const std::string& name) {
  check_amount(channel.bytes, "bytes of " + name);
  check_amount(channel.encode_s, "encode_s of " + name);
  check_amount(channel.decode_s, "decode_s of " + name);
  check_amount(channel.latency_s, "latency_s of " + name);
  check_amount(channel.connection_bytes_per_s, "connection_bytes_per_s of " + name);
  if (channel.connections < 1) throw InputError(where, name + " has no connection");
  if (channel.line >= int(lines.size())) {
    throw InputError(where, name + " uses line " + std::to_string(channel.line) + " of " +
                                std::to_string(lines.size()));
  }
  if (channel.line < 0 || channel.bytes == 0) return;
  const Line& line = lines[std::size_t(channel.line)];
  if (!(line.rate_bytes_per_s > 0) || !std::isfinite(line.rate_bytes_per_s)) {
    throw InputError(where, "line '" + line.name + "' has a rate of " +
                                std::to_string(line.rate_bytes_per_s) + " bytes/s, but " + name +
                                " needs it");
  }
}

void check_channels(const std::vector<ChannelCosts>& channels, const StepCosts& costs,
                    const std::string& name) {
  check_size(channels.size(), std::size_t(costs.shape.stages) - 1, name + " channels");
  for (std::size_t b = 0; b < channels.size(); ++b) {
    check_channel(channels[b], costs.lines, name + " channel " + std::to_string(b));
  }
}

std::vector<const ChannelCosts*> all_channels(const StepCosts& costs) {
  std::vector<const ChannelCosts*> result;
  for (const auto* channels :
       {&costs.forward, &costs.backward, &costs.norm_forward, &costs.norm_backward}) {
    for (const ChannelCosts& channel : *channels) result.push_back(&channel);
  }
  if (costs.shape.tied && costs.shape.stages > 1) {
    result.push_back(&costs.tied_forward);
    result.push_back(&costs.tied_backward);
  }
  return result;
}

}  // namespace

std::vector<double> line_windows(const StepCosts& costs) {
  std::vector<double> windows(costs.lines.size(), -1);
  for (const ChannelCosts* channel : all_channels(costs)) {
    if (channel->line < 0 || channel->bytes <= 0) continue;
    double& window = windows[std::size_t(channel->line)];
    if (window >= 0 && window != channel->connection_bytes_per_s) {
      throw InputError(where, "line '" + costs.lines[std::size_t(channel->line)].name +
                                  "' has connections of unlike connection_bytes_per_s");
    }
    window = channel->connection_bytes_per_s;
  }
  return windows;
}

void check_case(const SimulationCase& work) {
  const StepCosts& costs = work.costs;
  const Shape& shape = costs.shape;
  if (shape.stages < 1 || shape.micro_batches < 1 || shape.chunks < 1) {
    throw InputError(where, "needs at least one stage, micro-batch and chunk");
  }
  if (work.options.steps < 1) throw InputError(where, "needs at least one step");
  check_size(costs.stages.size(), std::size_t(shape.stages), "stages");
  check_size(work.lists.size(), std::size_t(shape.stages), "op lists");
  for (int s = 0; s < shape.stages; ++s) {
    check_stage(costs.stages[std::size_t(s)], s);
    for (const Op& op : work.lists[std::size_t(s)]) {
      if (op.micro_batch >= 0 && op.micro_batch < shape.micro_batches && op.chunk >= 0 &&
          op.chunk < shape.chunks) {
        continue;
      }
      throw InputError(where, "stage " + std::to_string(s) + " has op " + to_string(op) +
                                  ", beyond its micro-batches or chunks");
    }
  }
  check_channels(costs.forward, costs, "forward");
  check_channels(costs.backward, costs, "backward");
  check_channels(costs.norm_forward, costs, "norm_forward");
  check_channels(costs.norm_backward, costs, "norm_backward");
  if (shape.tied && shape.stages > 1) {
    check_channel(costs.tied_forward, costs.lines, "tied_forward");
    check_channel(costs.tied_backward, costs.lines, "tied_backward");
  }
  line_windows(costs);
}

}  // namespace nebula
