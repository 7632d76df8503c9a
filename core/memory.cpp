#include "core/memory.hpp"

#include <algorithm>

#include "core/step_costs.hpp"

namespace nebula {
namespace {

// Weight, gradient and AdamW's two moments.
constexpr double state_bytes_per_parameter = 16;

}  // namespace

std::vector<StageMemory> plan_memory(const Plan& plan, const Costs& costs) {
  std::vector<StageMemory> result;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const StagePlan& stage = plan.stages[s];
    const DeviceCosts& device = costs.devices.at(stage.device);
    const double sequences = double(plan.micro_batch) / stage.replicas;
    const double boundary_bytes = 4 * sequences * plan.job.sequence_length * plan.model.width;
    const double depth = in_flight(plan.schedule, plan.shape(), int(s));
    double saved = 0;
    for (int layer = stage.first_layer; layer < stage.last_layer; ++layer) {
      const std::string kind(to_string(layer_kind(plan.model, layer)));
      saved += device.layers.at(kind).saved_bytes.at(sequences);
    }
    StageMemory memory;
    memory.state_bytes = state_bytes_per_parameter *
                         double(stage_parameters(plan.model, stage.first_layer, stage.last_layer));
    // Recomputing keeps each micro-batch's input, and one micro-batch's activations at a time.
    memory.activation_bytes = stage.recompute ? depth * boundary_bytes + saved : depth * saved;
    const double neighbours = (s > 0 ? 1 : 0) + (s + 1 < plan.stages.size() ? 1 : 0);
    memory.transport_bytes = 2 * neighbours * depth * boundary_bytes;
    result.push_back(memory);
  }
  return result;
}

}  // namespace nebula
