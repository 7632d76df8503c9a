#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/costs.hpp"
#include "core/plan.hpp"
#include "planner/space.hpp"

namespace nebula {

/// A plan of the space with what the simulator says about it.
struct Ranked {
  Plan plan;
  double step_s = 0;
};

struct SearchResult {
  /// The chosen plan first, then by step time; no two alike in all of stages, micro-batches, kind
  /// of schedule and codecs. Predictions are filled in.
  std::vector<Ranked> best;
  std::size_t candidates = 0;
  std::size_t too_large = 0;
  std::size_t simulated = 0;
  double dropped_splits = 0;
  double seconds = 0;
};

/// Plans whose step is within this share of the fastest count as equally fast; among them the
/// gentlest codecs win, then the least memory.
inline constexpr double equally_fast = 0.01;

/// Branch and bound: all candidates get a lower bound (planner/bounds), the simulator runs the most
/// promising ones on all cores, and what can't come within equally_fast of the best is left out.
/// The answer is that of simulating them all, whatever the number of workers (0: one a core).
///
/// Throws RunError when nothing fits the devices' memory, naming the stage that lacks least.
SearchResult search(const Cluster& cluster, const Model& model, const Job& job, const Costs& costs,
                    const Pins& pins, int workers = 0);

/// Bits an element over all boundaries and directions: more is gentler.
int codec_bits(const Plan& plan);

/// True when `a` is to be chosen over `b`, both equally fast.
bool preferred(const Ranked& a, const Ranked& b, const Costs& costs);

}  // namespace nebula
