#pragma once

#include <string>

#include "core/costs.hpp"
#include "core/memory.hpp"
#include "core/node.hpp"
#include "core/plan.hpp"
#include "sim/simulate.hpp"

namespace nebula {

/// What a simulated plan is said to do.
struct RunReport {
  Plan plan;
  StepSummary summary;
  double tokens_per_s = 0;
  /// The paper's bubble ratios (1) and (2), from the mean times of stages and boundaries.
  double bubble_without_transfers = 0;
  double bubble_unoverlapped = 0;
  std::vector<StageMemory> memory;
  std::string costs_source;
};

RunReport make_report(const Plan& plan, const PlanSimulation& simulated, const Costs& costs);

/// Several lines of text, and one JSON object.
std::string to_text(const RunReport& report);
Node to_node(const RunReport& report);

}  // namespace nebula
