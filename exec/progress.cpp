#include "exec/progress.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include <sys/resource.h>
#include <unistd.h>

#include "core/fields.hpp"
#include "core/node.hpp"

namespace nebula {
namespace {

constexpr double seconds_between_lines = 5;

double median_step_s(const std::vector<StepProgress>& steps) {
  std::vector<double> seconds;
  for (std::size_t i = steps.size() > 1 ? 1 : 0; i < steps.size(); ++i) {
    seconds.push_back(steps[i].step_s);
  }
  if (seconds.empty()) return 0;
  const auto middle = seconds.begin() + std::ptrdiff_t(seconds.size() / 2);
  std::nth_element(seconds.begin(), middle, seconds.end());
  return *middle;
}

}  // namespace

RunLog::RunLog(const Plan& plan, bool visible)
    : plan_(plan), visible_(visible), terminal_(isatty(STDERR_FILENO) == 1) {}

void RunLog::add(const StepProgress& progress) {
  steps_.push_back(progress);
  if (!visible_) return;
  double total_s = 0;
  for (const StepProgress& step : steps_) total_s += step.step_s;
  const bool last = progress.step + 1 == plan_.job.steps;
  const bool first = steps_.size() == 1;
  if (terminal_ || first || last || total_s - shown_s_ >= seconds_between_lines) {
    shown_s_ = total_s;
    show(progress, last);
  }
}

void RunLog::show(const StepProgress& progress, bool last_step) {
  const double left_s = (plan_.job.steps - 1 - progress.step) * median_step_s(steps_);
  std::array<char, 200> line{};
  std::snprintf(line.data(), line.size(),
                "step %d/%d  loss %.4f  %.0f tokens/s  bubble %.0f %%  link %.0f %%  left %.0f s",
                progress.step + 1, plan_.job.steps, progress.loss, progress.tokens_per_s,
                100 * progress.bubble, 100 * progress.link_use, left_s);
  std::fprintf(stderr, terminal_ ? "\r\033[K%s%s" : "%s%s", line.data(),
               terminal_ && !last_step ? "" : "\n");
}

void RunLog::write_result(const std::string& path, const WorkerResult& result) const {
  TableWriter table;
  table.set("steps_done", result.steps_done).set("interrupted", result.interrupted);
  const double step_s = median_step_s(steps_);
  std::vector<double> losses;
  for (const StepProgress& step : steps_) losses.push_back(step.loss);
  if (!losses.empty()) table.set("first_loss", losses.front()).set("last_loss", losses.back());
  table.set("heldout_loss", result.heldout_loss)
      .set("median_step_s", step_s)
      .set("tokens_per_s", step_s > 0 ? plan_.job.tokens_per_step() / step_s : 0)
      .set("losses", losses);
  write_file(path, to_json(table.node()));
}

double peak_memory_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return double(usage.ru_maxrss) * 1024;
}

}  // namespace nebula
