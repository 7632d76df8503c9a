#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/plan.hpp"
#include "core/timeline.hpp"

namespace nebula {

/// Who wrote a trace, under which conditions. One file a process.
struct TraceInfo {
  /// The whole text of the plan, so that a trace explains itself.
  std::string plan;
  std::uint64_t plan_hash = 0;
  /// Common to all processes of one run; empty when unknown.
  std::string run;
  int stage = 0;
  /// Of the plan: how many traces make a complete set.
  int stages = 1;
  std::string cloud;
  /// The machine's own name.
  std::string host;
  /// "nebula-exec 0.1.0".
  std::string program;
  int threads = 0;
  /// The line between the clouds was emulated on this machine.
  bool emulated = false;
  /// Time 0 of this process's events: nanoseconds since 1970-01-01 UTC on its own clock.
  std::int64_t origin_unix_ns = 0;
  bool operator==(const TraceInfo&) const = default;
};

/// What a process found out about another's clock.
struct ClockOffset {
  int peer = 0;  ///< stage
  /// The peer's clock minus this process's.
  double offset_s = 0;
  /// Half the round trip that measured it: the offset can't be further off than this.
  double error_s = 0;
  bool operator==(const ClockOffset&) const = default;
};

/// One training step as the process saw it. What it did not learn is NaN.
struct StepMetrics {
  int step = 0;
  double loss = 0;
  /// Over all stages, before clipping.
  double grad_norm = 0;
  double learning_rate = 0;
  /// Targets that counted, in this step.
  double tokens = 0;
  double step_s = 0;
  /// Peak bytes of this process's tensors up to here.
  double peak_bytes = 0;
};

/// A trace file in memory. The plan's text is for parse_plan.
struct Trace {
  std::string path;
  TraceInfo info;
  std::vector<Event> events;
  std::vector<StepMetrics> metrics;
  std::vector<ClockOffset> clocks;
  /// False when the process was killed or still runs: its last seconds may be missing.
  bool complete = false;
};

/// Fills in what follows from the plan, this machine and now. Program, run, origin and emulation
/// are the caller's.
TraceInfo describe(const Plan& plan, int stage);

}  // namespace nebula
