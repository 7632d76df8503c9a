#include "traces/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <set>

#include "core/fields.hpp"
#include "core/units.hpp"
#include "traces/activities.hpp"

namespace nebula {
namespace {

/// Typical seconds of each activity of a step. All that ends a step counts as its update; what
/// comes between the events is in the summary.
std::map<Activity, double> typical_seconds(std::span<const Event> events) {
  std::map<Activity, double> result;
  for (const auto& [activity, seconds] : durations(events)) {
    Activity row = activity;
    switch (activity.kind) {
      case EventKind::op:
        if (row.op != OpKind::forward && row.op != OpKind::backward) row.op = OpKind::update;
        break;
      case EventKind::prepare:
      case EventKind::save:
      case EventKind::evaluate:
        continue;
      default:
        break;
    }
    result[row] += typical(seconds);
  }
  return result;
}

void add_activities(Comparison& comparison, std::span<const Event> predicted,
                    std::span<const Event> measured) {
  const std::map<Activity, double> expected = typical_seconds(predicted);
  const std::map<Activity, double> seen = typical_seconds(measured);
  std::set<Activity> activities;
  for (const auto* side : {&expected, &seen})
    for (const auto& [activity, seconds] : *side) activities.insert(activity);
  const auto value_or_zero = [](const std::map<Activity, double>& side, const Activity& activity) {
    const auto found = side.find(activity);
    return found == side.end() ? 0 : found->second;
  };
  for (const Activity& activity : activities)
    comparison.rows.push_back({to_string(activity), Measure::seconds,
                               value_or_zero(expected, activity), value_or_zero(seen, activity)});
}

void add_rests(Comparison& comparison, const StepSummary& predicted, const StepSummary& measured) {
  for (std::size_t s = 0; s < predicted.stages.size(); ++s) {
    const StageSummary& expected = predicted.stages[s];
    const StageSummary& seen = measured.stages.at(s);
    comparison.rows.push_back({"preparation and rest of stage " + std::to_string(s),
                               Measure::seconds, expected.prepare_s + expected.other_s,
                               seen.prepare_s + seen.other_s});
  }
}

LinkSummary link_or_nothing(const StepSummary& summary, const std::string& name) {
  for (const LinkSummary& link : summary.links)
    if (link.name == name) return link;
  return {name, 0, 0};
}

void add_links(Comparison& comparison, const Plan& plan, const StepSummary& predicted,
               const StepSummary& measured) {
  for (const Link& link : plan.cluster.links) {
    const std::string name = link.from + "->" + link.to;
    const LinkSummary expected = link_or_nothing(predicted, name);
    const LinkSummary seen = link_or_nothing(measured, name);
    if (expected.bytes <= 0 && seen.bytes <= 0) continue;
    comparison.rows.push_back({name + " a step", Measure::bytes, expected.bytes, seen.bytes});
    comparison.rows.push_back({name + " use", Measure::ratio, expected.use, seen.use});
  }
}

std::string text(Measure measure, double value) {
  switch (measure) {
    case Measure::seconds:
      return format_seconds(value);
    case Measure::bytes:
      return format_bytes(value);
    case Measure::ratio:
      break;
  }
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.1f %%", value * 100);
  return buffer;
}

std::string difference_text(const ComparisonRow& row) {
  if (std::isnan(row.difference())) return "-";
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%+.1f %%", row.difference() * 100);
  return buffer;
}

std::string unit_of(Measure measure) {
  switch (measure) {
    case Measure::seconds:
      return "s";
    case Measure::bytes:
      return "B";
    case Measure::ratio:
      break;
  }
  return "1";
}

std::string right(const std::string& cell, std::size_t width) {
  return std::string(width - std::min(width, cell.size()), ' ') + cell;
}

}  // namespace

double ComparisonRow::difference() const {
  if (measured == 0) return predicted == 0 ? 0 : std::numeric_limits<double>::quiet_NaN();
  return (predicted - measured) / measured;
}

Comparison compare(const Plan& plan, std::span<const Event> predicted,
                   const StepSummary& predicted_summary, std::span<const Event> measured,
                   const StepSummary& measured_summary) {
  Comparison comparison;
  comparison.rows.push_back(
      {"step", Measure::seconds, predicted_summary.step_s, measured_summary.step_s});
  comparison.rows.push_back(
      {"bubble", Measure::ratio, predicted_summary.bubble, measured_summary.bubble});
  add_activities(comparison, predicted, measured);
  add_rests(comparison, predicted_summary, measured_summary);
  add_links(comparison, plan, predicted_summary, measured_summary);
  return comparison;
}

std::string to_table(const Comparison& comparison) {
  std::size_t width = 4;
  for (const ComparisonRow& row : comparison.rows) width = std::max(width, row.what.size());
  const auto line = [width](const std::string& what, const std::string& predicted,
                            const std::string& measured, const std::string& difference) {
    return what + std::string(width - what.size(), ' ') + right(predicted, 13) +
           right(measured, 13) + right(difference, 12) + "\n";
  };
  std::string table = line("", "predicted", "measured", "difference");
  for (const ComparisonRow& row : comparison.rows)
    table += line(row.what, text(row.measure, row.predicted), text(row.measure, row.measured),
                  difference_text(row));
  return table;
}

Node to_node(const Comparison& comparison) {
  NodeList rows;
  for (const ComparisonRow& row : comparison.rows) {
    TableWriter table;
    table.set("what", row.what)
        .set("unit", unit_of(row.measure))
        .set("predicted", row.predicted)
        .set("measured", row.measured);
    // JSON has no NaN: a row that was never measured has no difference.
    if (!std::isnan(row.difference())) table.set("difference", row.difference());
    rows.push_back(table.node());
  }
  return {rows, 0};
}

}  // namespace nebula
