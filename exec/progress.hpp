#pragma once

#include <string>
#include <vector>

#include "core/plan.hpp"
#include "exec/worker.hpp"

namespace nebula {

/// What a person watches, and what stays of it: a line that renews itself on a terminal, a line
/// every few seconds elsewhere, on stderr.
class RunLog {
 public:
  RunLog(const Plan& plan, bool visible);

  void add(const StepProgress& progress);
  /// {steps_done, interrupted, first_loss, last_loss, heldout_loss, median_step_s, tokens_per_s,
  /// losses}: of this run, without the steps before a resume. The first step warms up and is left
  /// out of the median where there are others.
  void write_result(const std::string& path, const WorkerResult& result) const;

 private:
  void show(const StepProgress& progress, bool last_step);

  const Plan& plan_;
  bool visible_;
  bool terminal_;
  double shown_s_ = 0;
  std::vector<StepProgress> steps_;
};

/// Peak resident bytes of this process.
double peak_memory_bytes();

}  // namespace nebula
