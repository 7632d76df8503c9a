#include "traces/activities.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace nebula {
namespace {

std::string op_name(OpKind kind) {
  switch (kind) {
    case OpKind::forward:
      return "forward";
    case OpKind::backward:
      return "backward";
    default:
      return to_string(Op{kind, 0, 0});
  }
}

}  // namespace

Activity activity_of(const Event& event) {
  Activity activity{event.kind, event.stage, OpKind::forward, MessageKind::activation, -1};
  switch (event.kind) {
    case EventKind::op:
      activity.op = event.op.kind;
      break;
    case EventKind::wait:
    case EventKind::encode:
    case EventKind::decode:
    case EventKind::transfer:
      activity.message = event.message;
      activity.peer = event.peer;
      break;
    default:
      break;
  }
  return activity;
}

std::string to_string(const Activity& activity) {
  const std::string stage = std::to_string(activity.stage);
  const std::string message(to_string(activity.message));
  switch (activity.kind) {
    case EventKind::op:
      return op_name(activity.op) + " of stage " + stage;
    case EventKind::transfer:
      return "transfer " + message + " " + std::to_string(activity.peer) + " -> " + stage;
    case EventKind::wait:
    case EventKind::encode:
    case EventKind::decode:
      return std::string(to_string(activity.kind)) + " " + message + " of stage " + stage;
    default:
      return std::string(to_string(activity.kind)) + " of stage " + stage;
  }
}

std::map<Activity, std::vector<double>> durations(std::span<const Event> events) {
  std::map<Activity, std::vector<double>> result;
  for (const Event& event : events)
    if (event.kind != EventKind::wait) result[activity_of(event)].push_back(event.seconds());
  return result;
}

std::vector<int> steps_of(std::span<const Event> events) {
  std::set<int> steps;
  for (const Event& event : events)
    if (event.kind == EventKind::op && event.op.kind == OpKind::update) steps.insert(event.step);
  return {steps.begin(), steps.end()};
}

std::vector<Event> after_warm_up(std::span<const Event> events, int skip) {
  const std::vector<int> all = steps_of(events);
  const auto first = all.begin() + std::min(std::ptrdiff_t(skip), std::ptrdiff_t(all.size()));
  const std::set<int> steps(first, all.end());
  std::vector<Event> kept;
  for (const Event& event : events)
    if (steps.contains(event.step)) kept.push_back(event);
  return kept;
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const double position = q * double(values.size() - 1);
  const auto below = std::size_t(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], position - double(below));
}

double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

double typical(const std::vector<double>& values) {
  const double limit = 3 * median(values);
  double sum = 0;
  double count = 0;
  for (const double value : values) {
    if (value > limit) continue;
    sum += value;
    ++count;
  }
  return sum / count;
}

}  // namespace nebula
