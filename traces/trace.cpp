#include "traces/trace.hpp"

#include <array>

#include <unistd.h>

namespace nebula {

TraceInfo describe(const Plan& plan, int stage) {
  const StagePlan& part = plan.stages.at(std::size_t(stage));
  TraceInfo info;
  info.plan = to_json(plan);
  info.plan_hash = plan_hash(plan);
  info.stage = stage;
  info.stages = plan.stage_count();
  info.cloud = part.cloud;
  info.threads = part.threads;
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) == 0) info.host = host.data();
  return info;
}

}  // namespace nebula
