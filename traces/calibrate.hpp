#pragma once

#include <span>

#include "core/costs.hpp"
#include "core/plan.hpp"
#include "core/timeline.hpp"

namespace nebula {

struct CalibrationSettings {
  /// Training steps left out: caches, connections and allocators are still cold.
  int warm_up_steps = 2;
  /// Steps that must be left; fewer tell too little.
  int least_steps = 3;
};

/// Fits costs to what a run of `plan` was seen to take (merged traces), and changes in `base` only
/// what the events tell: for the plan's kinds of device the layers' forward, backward and update
/// seconds, the codecs used, and the overhead of a step; for the links crossed, rate and latency.
/// Curves keep their shape over the micro-batch's size and are scaled. The residuals say how far
/// the costs then are from what was measured.
///
/// Pure: same arguments, same costs. Throws InputError when `base` is of another model, precision
/// or length, or when there are too few steps.
Costs calibrate(const Plan& plan, std::span<const Event> events, const Costs& base,
                const CalibrationSettings& settings = {});

}  // namespace nebula
