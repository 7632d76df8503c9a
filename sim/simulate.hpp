#pragma once

#include <span>
#include <vector>

#include "core/costs.hpp"
#include "core/plan.hpp"
#include "core/step_costs.hpp"
#include "core/summary.hpp"
#include "core/timeline.hpp"

namespace nebula {

struct SimulationOptions {
  /// Run back to back; the first one fills the pipeline.
  int steps = 2;
  /// False leaves Simulation::events empty: a planner wants only the step time.
  bool want_events = true;
};

/// What a simulation saw. Times start at 0.
struct Simulation {
  std::vector<Event> events;
  /// Between the ends of the first stage's last two updates (of its last ops in lists without
  /// updates); with a single step, until everything has ended.
  double step_s = 0;
  bool operator==(const Simulation&) const = default;
};

struct SimulationCase {
  StepCosts costs;
  OpLists lists;
  SimulationOptions options;
};

/// Simulates one training step after another: a SimGrid actor runs each stage's list (core's
/// run_stage), messages share the lines that they travel on.
///
/// The same case gives the same bits, whatever ran before. Throws InputError for costs that can't
/// be simulated (a line without a rate) and RunError when the lists wait for each other for ever.
Simulation simulate(const StepCosts& costs, const OpLists& lists,
                    const SimulationOptions& options = {});

/// Many cases at once on `workers` processes (0: one a core); the results do not depend on it. Of
/// several failures the one of the first case is thrown.
std::vector<Simulation> simulate_many(std::span<const SimulationCase> cases, int workers = 0);

/// A plan's simulation and what it says about a step in the steady state.
struct PlanSimulation {
  StepCosts costs;
  Simulation simulation;
  StepSummary summary;
};

/// `cluster` may differ from the plan's: that is a what-if.
PlanSimulation simulate_plan(const Plan& plan, const Cluster& cluster, const Costs& costs);

}  // namespace nebula
