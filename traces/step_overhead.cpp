#include "traces/step_overhead.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "traces/activities.hpp"

namespace nebula {
namespace {

struct Interval {
  double start_s = 0;
  double end_s = 0;
};

/// Seconds of [from, to] that none of the intervals covers; they are in order of their starts.
/// Codecs may run beside the ops, so that adding durations up would count twice.
double uncovered(std::span<const Interval> intervals, double from, double to) {
  double seconds = 0;
  double reached = from;
  for (const Interval& interval : intervals) {
    if (interval.start_s >= to) break;
    if (interval.start_s > reached) seconds += interval.start_s - reached;
    reached = std::max(reached, interval.end_s);
  }
  return seconds + std::max(0.0, to - reached);
}

}  // namespace

std::optional<double> step_overhead(std::span<const Event> events, int stage) {
  std::vector<Interval> explained;
  std::map<int, double> step_end;
  for (const Event& event : events) {
    if (event.stage != stage) continue;
    if (event.kind == EventKind::op && event.op.kind == OpKind::update)
      step_end[event.step] = event.end_s;
    if (event.kind != EventKind::prepare && event.kind != EventKind::transfer)
      explained.push_back({event.start_s, event.end_s});
  }
  std::sort(explained.begin(), explained.end(),
            [](const Interval& a, const Interval& b) { return a.start_s < b.start_s; });

  std::vector<double> overheads;
  for (const auto& [step, end_s] : step_end) {
    const auto before = step_end.find(step - 1);
    if (before == step_end.end()) continue;
    // From the first interval that may reach into the step: those before it ended earlier.
    const auto first = std::partition_point(
        explained.begin(), explained.end(),
        [&](const Interval& interval) { return interval.start_s < before->second; });
    const std::span<const Interval> from_here(first == explained.begin() ? first : std::prev(first),
                                              explained.end());
    overheads.push_back(uncovered(from_here, before->second, end_s));
  }
  if (overheads.empty()) return std::nullopt;
  return typical(overheads);
}

}  // namespace nebula
