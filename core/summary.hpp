#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/plan.hpp"
#include "core/timeline.hpp"

namespace nebula {

/// Where the seconds of one stage's step went; the parts add up to the step.
struct StageSummary {
  double forward_s = 0;
  double backward_s = 0;
  /// Norm, tied gradients and optimiser.
  double update_s = 0;
  double codec_s = 0;
  double prepare_s = 0;
  /// Standing still before the step's first forward.
  double warm_up_s = 0;
  double wait_activation_s = 0;
  double wait_gradient_s = 0;
  /// Standing still for norm or tied gradient at the end of the step.
  double drain_s = 0;
  /// What no event explains.
  double other_s = 0;

  double busy_s() const { return forward_s + backward_s + update_s + codec_s + prepare_s; }
  double idle_s() const {
    return warm_up_s + wait_activation_s + wait_gradient_s + drain_s + other_s;
  }
};

/// One directed link between clouds, over one step.
struct LinkSummary {
  std::string name;  ///< "north->south"
  double bytes = 0;
  /// bytes / (rate x step).
  double use = 0;
};

/// The mean step of a timeline.
struct StepSummary {
  double step_s = 0;
  /// Idle stage time over total stage time.
  double bubble = 0;
  int steps = 0;
  std::vector<StageSummary> stages;
  std::vector<LinkSummary> links;
};

/// Means over the steps after `skip`, of a simulated or measured timeline. A stage's step lasts
/// from the end of its previous update to the end of its own. Throws InputError when no complete
/// step is left.
StepSummary summarize(const Plan& plan, std::span<const Event> events, int skip = 1);

}  // namespace nebula
