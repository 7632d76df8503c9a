#include "traces/compare.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <set>

#include "core/fields.hpp"
#include "core/units.hpp"
#include "traces/medians.hpp"

namespace nebula {
namespace {

double value_or_zero(const std::map<Activity, std::vector<double>>& seconds,
                     const Activity& activity) {
  const auto found = seconds.find(activity);
  return found == seconds.end() ? 0 : median(found->second);
}

void add_activities(Comparison& comparison, std::span<const Event> predicted,
                    std::span<const Event> measured) {
  const auto expected = durations(predicted);
  const auto seen = durations(measured);
  std::set<Activity> activities;
  for (const auto* side : {&expected, &seen})
    for (const auto& [activity, seconds] : *side) activities.insert(activity);
  for (const Activity& activity : activities) {
    // Neither is part of a step.
    if (activity.kind == EventKind::save || activity.kind == EventKind::evaluate) continue;
    comparison.rows.push_back({to_string(activity), Measure::seconds,
                               value_or_zero(expected, activity), value_or_zero(seen, activity)});
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
