#include "planner/search.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "core/memory.hpp"
#include "core/units.hpp"
#include "planner/bounds.hpp"
#include "planner/reason.hpp"
#include "sim/simulate.hpp"

namespace nebula {
namespace {

// Simulated together: a fixed number, so that the search takes the same way on any machine.
constexpr std::size_t batch_size = 32;
constexpr std::size_t table_rows = 10;

double seconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

double peak_memory(const Plan& plan, const Costs& costs) {
  double peak = 0;
  for (const StageMemory& stage : plan_memory(plan, costs)) {
    peak = std::max(peak, stage.total_bytes());
  }
  return peak;
}

// Bytes by which the plan's worst stage exceeds its device, and that stage.
std::pair<double, std::size_t> excess(const Plan& plan, const Costs& costs) {
  const auto memory = plan_memory(plan, costs);
  std::pair<double, std::size_t> worst{-std::numeric_limits<double>::infinity(), 0};
  for (std::size_t s = 0; s < memory.size(); ++s) {
    const Device* device = plan.cluster.find_device(plan.stages[s].device);
    worst = std::max(worst, {memory[s].total_bytes() - device->memory_bytes, s});
  }
  return worst;
}

}  // namespace

// Rows of the table that may not repeat.
using Likeness = std::tuple<std::size_t, int, int, int, int>;

class Search {
 public:
  Search(const Cluster& cluster, const Model& model, const Job& job, const Costs& costs,
         const Pins& pins, int workers)
      : start_s_(seconds_now()),
        costs_(costs),
        space_(cluster, model, job, costs, pins),
        workers_(workers) {
    bound_candidates();
  }

  // Passes: bound everything; simulate best first; choose; fill the table; take choices away.
  SearchResult run() {
    least_step([](const Candidate&) { return true; });
    const std::size_t winner = choose();
    SearchResult result;
    result.best = table(winner);
    Plan& plan = result.best.front().plan;
    plan.predicted.reason = reason(plan, result.best.front().step_s, alternatives(winner));
    result.candidates = space_.candidates().size();
    result.too_large = too_large_;
    result.simulated = step_s_.size();
    result.dropped_splits = space_.dropped_splits();
    result.seconds = seconds_now() - start_s_;
    return result;
  }

 private:
  const Candidate& at(std::size_t index) const { return space_.candidates()[index]; }

  void bound_candidates() {
    const auto& candidates = space_.candidates();
    std::pair<double, std::string> least{std::numeric_limits<double>::infinity(), ""};
    bounds_.resize(candidates.size());
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const Plan plan = space_.plan(candidates[i]);
      const auto [missing, stage] = excess(plan, costs_);
      if (missing > 0) {
        ++too_large_;
        if (missing < least.first) {
          least = {missing, "stage " + std::to_string(stage) + " of '" + one_line(plan) + "'"};
        }
        continue;
      }
      bounds_[i] = step_lower_bound(step_costs(plan, plan.cluster, costs_), plan.schedule);
      order_.push_back(i);
    }
    if (order_.empty()) {
      throw RunError("no plan fits the devices' memory; the nearest lacks " +
                     format_bytes(least.first) + " at " + least.second);
    }
    std::stable_sort(order_.begin(), order_.end(),
                     [&](std::size_t a, std::size_t b) { return bounds_[a] < bounds_[b]; });
  }

  void simulate_batch(const std::vector<std::size_t>& batch) {
    std::vector<SimulationCase> cases;
    for (const std::size_t index : batch) {
      const Plan plan = space_.plan(at(index));
      cases.push_back({step_costs(plan, plan.cluster, costs_),
                       make_schedule(plan.schedule, plan.shape()),
                       {.steps = 2, .want_events = false}});
    }
    const auto results = simulate_many(cases, workers_);
    for (std::size_t i = 0; i < batch.size(); ++i) step_s_[batch[i]] = results[i].step_s;
  }

  // The least step among candidates that `admits` lets in; nothing when there are none.
  // Afterwards all of them within equally_fast of it have been simulated.
  template <typename Admits>
  std::optional<double> least_step(const Admits& admits) {
    double best = std::numeric_limits<double>::infinity();
    for (const auto& [index, step_s] : step_s_) {
      if (admits(at(index))) best = std::min(best, step_s);
    }
    std::vector<std::size_t> batch;
    const auto flush = [&] {
      if (batch.empty()) return;
      simulate_batch(batch);
      for (const std::size_t index : batch) best = std::min(best, step_s_.at(index));
      batch.clear();
    };
    for (const std::size_t index : order_) {
      if (bounds_[index] > best * (1 + equally_fast)) break;
      if (step_s_.contains(index) || !admits(at(index))) continue;
      batch.push_back(index);
      if (batch.size() == batch_size) flush();
    }
    flush();
    if (best == std::numeric_limits<double>::infinity()) return std::nullopt;
    return best;
  }

  Ranked ranked(std::size_t index) const { return {space_.plan(at(index)), step_s_.at(index)}; }

  std::size_t choose() const {
    double best = std::numeric_limits<double>::infinity();
    for (const auto& [index, step_s] : step_s_) best = std::min(best, step_s);
    std::optional<std::size_t> winner;
    for (const auto& [index, step_s] : step_s_) {
      if (step_s > best * (1 + equally_fast)) continue;
      if (!winner || preferred(ranked(index), ranked(*winner), costs_)) winner = index;
    }
    return *winner;
  }

  Likeness likeness(std::size_t index) const {
    const Candidate& candidate = at(index);
    const int kind = candidate.extra < 0 ? 0 : 1;
    return {space_.plan(candidate).stages.size(), candidate.micro_batch, kind,
            candidate.forward_codec, candidate.backward_codec};
  }

  // Simulates the most promising plan of further kinds until the table can be filled.
  std::vector<Ranked> table(std::size_t winner) {
    std::set<Likeness> seen;
    for (const auto& [index, step_s] : step_s_) seen.insert(likeness(index));
    std::vector<std::size_t> batch;
    for (const std::size_t index : order_) {
      if (seen.size() >= 3 * table_rows) break;
      if (seen.insert(likeness(index)).second) batch.push_back(index);
    }
    if (!batch.empty()) simulate_batch(batch);

    std::vector<std::size_t> order;
    for (const auto& [index, step_s] : step_s_) order.push_back(index);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      if ((a == winner) != (b == winner)) return a == winner;
      return step_s_.at(a) < step_s_.at(b);
    });
    std::set<Likeness> shown;
    std::vector<Ranked> rows;
    for (const std::size_t index : order) {
      if (rows.size() == table_rows) break;
      if (shown.insert(likeness(index)).second) rows.push_back(predicted(index));
    }
    return rows;
  }

  Ranked predicted(std::size_t index) const {
    Ranked row = ranked(index);
    const PlanSimulation simulation = simulate_plan(row.plan, row.plan.cluster, costs_);
    Prediction& prediction = row.plan.predicted;
    prediction.step_s = row.step_s;
    prediction.bubble = simulation.summary.bubble;
    prediction.tokens_per_s = row.plan.job.tokens_per_step() / row.step_s;
    for (const StageMemory& stage : plan_memory(row.plan, costs_)) {
      prediction.memory_bytes.push_back(stage.total_bytes());
    }
    prediction.costs_source = costs_.source;
    return row;
  }

  // The best step without each of the winner's choices.
  Alternatives alternatives(std::size_t winner) {
    const Candidate chosen = at(winner);
    const Plan plan = space_.plan(chosen);
    Alternatives result;
    if (plan.stage_count() > 1) {
      result.one_stage =
          least_step([&](const Candidate& c) { return space_.plan(c).stage_count() == 1; });
      result.float32 = least_step([&](const Candidate& c) {
        const Plan other = space_.plan(c);
        return other.stage_count() > 1 && codec_bits(other) == 64 * int(other.boundaries.size());
      });
      result.plain_depth = least_step([&](const Candidate& c) { return c.extra == 0; });
    }
    result.one_micro_batch =
        least_step([&](const Candidate& c) { return c.micro_batch == plan.job.global_batch; });
    return result;
  }

  double start_s_;
  const Costs& costs_;
  Space space_;
  int workers_;
  std::vector<double> bounds_;
  /// Candidates that fit, by bound.
  std::vector<std::size_t> order_;
  std::map<std::size_t, double> step_s_;
  std::size_t too_large_ = 0;
};

int codec_bits(const Plan& plan) {
  int bits = 0;
  for (const BoundaryPlan& boundary : plan.boundaries) {
    bits += codec_info(boundary.forward.name).bits + codec_info(boundary.backward.name).bits;
  }
  return bits;
}

bool preferred(const Ranked& a, const Ranked& b, const Costs& costs) {
  const auto gentleness = [](const Plan& plan) {
    // One stage sends nothing: gentler than any codec.
    return plan.boundaries.empty() ? std::numeric_limits<int>::max()
                                   : codec_bits(plan) / int(plan.boundaries.size());
  };
  const auto key = [&](const Ranked& r) {
    return std::tuple(-gentleness(r.plan), peak_memory(r.plan, costs), r.step_s, one_line(r.plan));
  };
  return key(a) < key(b);
}

SearchResult search(const Cluster& cluster, const Model& model, const Job& job, const Costs& costs,
                    const Pins& pins, int workers) {
  check_costs(costs, cluster, model, job, "costs");
  return Search(cluster, model, job, costs, pins, workers).run();
}

}  // namespace nebula
