#pragma once

#include <vector>

#include "core/schedules.hpp"
#include "core/step_costs.hpp"

namespace nebula::test {

/// End of an op, found without the simulator.
struct OpEnd {
  int step = 0;
  int stage = 0;
  Op op;
  double end_s = 0;
};

/// Runs `steps` steps by a recurrence written down from the definition of the schedules, with none
/// of the simulator's parts: lists of forwards and backwards, lines that serve one message after
/// the other. Lines must not be shared by several pairs of stages.
std::vector<OpEnd> recurrence(const StepCosts& costs, const ScheduleSettings& schedule, int steps);

}  // namespace nebula::test
