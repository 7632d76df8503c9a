#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/step_costs.hpp"

namespace nebula {

/// What the stages tell each other at the end of a step, along with the gradient norm: partial on
/// its way from the last stage to the first, total on its way back. Little-endian on the wire.
struct StepReport {
  double squared_norm = 0;
  /// Mean over the step's valid tokens.
  double loss = 0;
  /// Working seconds, summed over stages.
  double busy_s = 0;
  /// Not zero: somebody was asked to stop after this step.
  std::uint64_t stop = 0;
  bool operator==(const StepReport&) const = default;
};
static_assert(sizeof(StepReport) == step_report_bytes);

inline std::vector<std::byte> to_bytes(const StepReport& report) {
  std::vector<std::byte> bytes(sizeof report);
  std::memcpy(bytes.data(), &report, sizeof report);
  return bytes;
}

inline StepReport step_report(std::span<const std::byte> bytes, const std::string& what) {
  StepReport report;
  if (bytes.size() != sizeof report) throw RunError(what + " has a wrong size");
  std::memcpy(&report, bytes.data(), sizeof report);
  return report;
}

}  // namespace nebula
