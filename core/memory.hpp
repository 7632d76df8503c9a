#pragma once

#include <vector>

#include "core/costs.hpp"
#include "core/plan.hpp"

namespace nebula {

/// Peak bytes of one stage.
struct StageMemory {
  /// float32 weights, gradients and two AdamW moments.
  double state_bytes = 0;
  /// Saved for the backward by the micro-batches in flight.
  double activation_bytes = 0;
  /// Boundary tensors sent and received, not yet released.
  double transport_bytes = 0;
  double total_bytes() const { return state_bytes + activation_bytes + transport_bytes; }
};

std::vector<StageMemory> plan_memory(const Plan& plan, const Costs& costs);

}  // namespace nebula
