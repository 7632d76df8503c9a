#pragma once

#include <vector>

#include "sim/simulate.hpp"

namespace nebula {

/// Throws InputError for a case that can't be simulated: seconds or bytes that are negative or not
/// finite, a message on a line without a rate, or sizes that
/// do not fit the shape.
void check_case(const SimulationCase& work);

/// What one connection of each line carries at most, in bytes/s; 0 is no limit. All channels of a
/// line agree on it, or InputError.
std::vector<double> line_windows(const StepCosts& costs);

}  // namespace nebula
