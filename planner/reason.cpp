#include "planner/reason.hpp"

#include <array>
#include <cstdio>

namespace nebula {
namespace {

// "31 % slower", "1.8 times as long", "no slower".
std::string slower(double step_s, double other_s) {
  const double ratio = other_s / step_s;
  std::array<char, 40> text{};
  if (ratio < 1.005) return "no slower";
  if (ratio < 1.5) {
    std::snprintf(text.data(), text.size(), "%.0f %% slower", 100 * (ratio - 1));
  } else {
    std::snprintf(text.data(), text.size(), "%.1f times as long", ratio);
  }
  return text.data();
}

void add(std::string& line, const std::string& part) {
  line += (line.empty() ? "" : "; ") + part;
}

}  // namespace

std::string reason(const Plan& plan, double step_s, const Alternatives& without) {
  std::string line;
  if (plan.stage_count() > 1 && without.one_stage) {
    add(line, std::to_string(plan.stage_count()) + " stages: one alone " +
                  slower(step_s, *without.one_stage));
  }
  if (plan.micro_batches > 1 && without.one_micro_batch) {
    add(line, std::to_string(plan.micro_batches) + " micro-batches: one " +
                  slower(step_s, *without.one_micro_batch));
  }
  if (!plan.boundaries.empty()) {
    const BoundaryPlan& boundary = plan.boundaries.front();
    const bool coded = boundary.forward.name != "float32" || boundary.backward.name != "float32";
    if (coded && without.float32) {
      add(line, boundary.forward.name + "/" + boundary.backward.name + ": float32 " +
                    slower(step_s, *without.float32));
    } else if (!coded) {
      add(line, "float32: no codec makes the step 1 % faster");
    }
    const auto& depths = plan.schedule.in_flight;
    const bool deep = !depths.empty() && depths.front() > plan.stage_count();
    if (deep && without.plain_depth) {
      add(line, std::to_string(depths.front()) + " in flight: plain 1F1B " +
                    slower(step_s, *without.plain_depth));
    }
  }
  if (plan.stage_count() == 1) add(line, "one stage: no split over the clouds is faster");
  return line;
}

}  // namespace nebula
