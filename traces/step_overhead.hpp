#pragma once

#include <optional>
#include <span>

#include "core/timeline.hpp"

namespace nebula {

/// Typical seconds of a stage's step that no op, codec, wait, checkpoint or evaluation explains:
/// preparing the batch and whatever else happens between the events. Nothing when no step has its
/// predecessor's end.
std::optional<double> step_overhead(std::span<const Event> events, int stage);

}  // namespace nebula
