#pragma once

#include <span>
#include <string>
#include <vector>

#include "traces/trace.hpp"

namespace nebula {

/// Reads one file, also one that its process still writes or that was left by a killed one.
/// Throws InputError when it is no trace, of another version or damaged.
Trace read_trace(const std::string& path);

/// Reads the traces of one run: files, and folders of *.h5. Returns one trace a stage, in order.
/// Throws InputError when a stage is missing or there twice, or when plans or runs differ.
std::vector<Trace> read_traces(const std::vector<std::string>& files_or_folders);

/// The plan that the traces are of: of `plan_file` where given, or else as the traces embed it.
/// Throws InputError when the file holds another plan.
Plan plan_of(std::span<const Trace> traces, const std::string& plan_file = "");

/// What to add to each process's event times so that all lie on one axis: 0 is the earliest
/// origin, and the clock of the first trace counts. Offsets that were measured (`clocks`, by
/// either side) are followed along the chain of least error; a process without any is trusted.
std::vector<double> time_shifts(std::span<const Trace> traces);

/// All events on that one axis, by end.
std::vector<Event> merge(std::span<const Trace> traces);

}  // namespace nebula
