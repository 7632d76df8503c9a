#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/node.hpp"
#include "core/plan.hpp"
#include "core/summary.hpp"
#include "core/timeline.hpp"

namespace nebula {

enum class Measure { seconds, bytes, ratio };

struct ComparisonRow {
  std::string what;
  Measure measure = Measure::seconds;
  double predicted = 0;
  double measured = 0;
  /// (predicted - measured) / measured; NaN when nothing was measured.
  double difference() const;
};

struct Comparison {
  std::vector<ComparisonRow> rows;
};

/// Predicted beside measured: seconds and bubble of the step, then every op and coding of every
/// stage, then every message and line. Activities count with their typical seconds, steps and
/// lines with the means of the summaries. An activity that only one side has shows 0 on the other.
Comparison compare(const Plan& plan, std::span<const Event> predicted,
                   const StepSummary& predicted_summary, std::span<const Event> measured,
                   const StepSummary& measured_summary);

/// Aligned columns with units, one row a line.
std::string to_table(const Comparison& comparison);
Node to_node(const Comparison& comparison);

}  // namespace nebula
