#include "sim/simulate.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <type_traits>

#include "core/schedules.hpp"
#include "sim/check_case.hpp"
#include "sim/engine.hpp"
#include "sim/process_pool.hpp"

namespace nebula {
namespace {

static_assert(std::is_trivially_copyable_v<Event>);

// Between two copies of this process: as it lies in memory.
std::string to_bytes(const Simulation& simulation) {
  const std::size_t events = simulation.events.size() * sizeof(Event);
  std::string bytes(sizeof(double) + events, '\0');
  std::memcpy(bytes.data(), &simulation.step_s, sizeof(double));
  if (events > 0) std::memcpy(bytes.data() + sizeof(double), simulation.events.data(), events);
  return bytes;
}

Simulation from_bytes(const std::string& bytes) {
  Simulation simulation;
  std::memcpy(&simulation.step_s, bytes.data(), sizeof(double));
  const std::size_t events = bytes.size() - sizeof(double);
  simulation.events.resize(events / sizeof(Event));
  if (events > 0) std::memcpy(simulation.events.data(), bytes.data() + sizeof(double), events);
  return simulation;
}

}  // namespace

std::vector<Simulation> simulate_many(std::span<const SimulationCase> cases, int workers) {
  int stages = 0;
  std::size_t lines = 0;
  for (const SimulationCase& work : cases) {
    check_case(work);
    stages = std::max(stages, work.costs.shape.stages);
    lines = std::max(lines, work.costs.lines.size());
  }
  // Lives in the children only.
  std::optional<Engine> engine;
  const auto bytes =
      run_in_children(cases.size(), {workers, Engine::most_cases}, [&](std::size_t index) {
        if (!engine) engine.emplace(stages, int(lines));
        return to_bytes(engine->run(cases[index]));
      });
  std::vector<Simulation> results;
  for (const std::string& one : bytes) results.push_back(from_bytes(one));
  return results;
}

Simulation simulate(const StepCosts& costs, const OpLists& lists,
                    const SimulationOptions& options) {
  const SimulationCase work{costs, lists, options};
  return simulate_many({&work, 1}, 1).front();
}

PlanSimulation simulate_plan(const Plan& plan, const Cluster& cluster, const Costs& costs) {
  PlanSimulation result;
  result.costs = step_costs(plan, cluster, costs);
  const OpLists lists = make_schedule(plan.schedule, plan.shape());
  check(plan.shape(), lists);
  result.simulation = simulate(result.costs, lists);
  result.summary = summarize(plan, result.simulation.events);
  return result;
}

}  // namespace nebula
