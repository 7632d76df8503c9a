#pragma once

#include <string>

#include "core/schedules.hpp"
#include "core/step_costs.hpp"

namespace nebula {

/// A step time that no simulation of these costs and lists is below: the largest of
///
/// - for each stage s: fill (the first micro-batch's way to s), all of s's own work, drain (the
/// last
///   gradient's way back to stage 0);
/// - for each boundary and direction: fill, its m messages one after the other at the rate of line
///   and connections, and the way of the last one to the end of the step;
/// - for a stage that keeps d micro-batches in flight: the way there and back, once for every d
///   micro-batches, because micro-batch i + d waits for the gradient of i.
///
/// They hold from one step to the next because the norm makes every stage's step lie between two
/// updates of stage 0, for schedules that end with a backward on every stage.
double step_lower_bound(const StepCosts& costs, const ScheduleSettings& schedule);

}  // namespace nebula
