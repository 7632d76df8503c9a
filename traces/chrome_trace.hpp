#pragma once

#include <span>
#include <string>

#include "core/plan.hpp"
#include "core/timeline.hpp"

namespace nebula {

/// Writes a timeline, measured or simulated, for chrome://tracing and ui.perfetto.dev: a process a
/// stage; rows for computing, codecs, waiting, and one a peer and direction for what arrives.
///
/// A line's row shows when the line was busy with a message: from the previous arrival or from
/// ready-to-send, whichever is later. The message's whole time under way stands in its details.
/// Throws RunError when the file can't be written.
void write_chrome_trace(const std::string& path, std::span<const Event> events, const Plan& plan);

}  // namespace nebula
