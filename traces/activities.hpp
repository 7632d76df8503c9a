#pragma once

#include <compare>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/timeline.hpp"

namespace nebula {

/// Everything that is done again and again and should take equally long each time. Forwards of one
/// stage are one activity, whatever the micro-batch.
struct Activity {
  EventKind kind = EventKind::op;
  int stage = 0;
  /// For kind op; forward otherwise.
  OpKind op = OpKind::forward;
  /// For encode, decode and transfer; activation otherwise.
  MessageKind message = MessageKind::activation;
  int peer = -1;
  auto operator<=>(const Activity&) const = default;
};
Activity activity_of(const Event& event);
/// "forward of stage 0", "decode activation of stage 1", "transfer activation 0 -> 1".
std::string to_string(const Activity& activity);

/// Seconds of every occurrence in order of the events, apart from waits.
std::map<Activity, std::vector<double>> durations(std::span<const Event> events);

/// The numbers of the training steps in the events, in order: those with an update.
std::vector<int> steps_of(std::span<const Event> events);
/// Events of the training steps after the first `skip`; those belonging to no step stay out.
std::vector<Event> after_warm_up(std::span<const Event> events, int skip);

/// The value below which the fraction `q` of the values lies, interpolated; 0.5 is the median.
/// NaN of nothing.
double quantile(std::vector<double> values, double q);
double median(std::vector<double> values);
/// The mean of the values up to three times the median: a pipeline adds its ops up, so that their
/// mean counts, but not single stragglers. NaN of nothing.
double typical(const std::vector<double>& values);

}  // namespace nebula
