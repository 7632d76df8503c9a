#pragma once

#include <string>
#include <vector>

#include "core/fields.hpp"
#include "core/schedule.hpp"

namespace nebula {

enum class ScheduleKind { gpipe, one_f_one_b };
std::string_view to_string(ScheduleKind kind);

/// A schedule as a plan names it.
struct ScheduleSettings {
  ScheduleKind kind = ScheduleKind::one_f_one_b;
  /// Micro-batches in flight at each stage, for 1f1b; plain 1F1B has stages - s at stage s.
  /// Must not grow from one stage to the next. Empty for gpipe.
  std::vector<int> in_flight;
  bool operator==(const ScheduleSettings&) const = default;
};

/// 1F1B whose in-flight depth grows by 1 + extra from each stage to the one before it, starting
/// with 1 at the last, capped by the micro-batches: plain 1F1B for extra = 0; more where every hop
/// is slow.
ScheduleSettings one_f_one_b(const Shape& shape, int extra = 0);
ScheduleSettings gpipe();

/// Most micro-batches between forward and backward at once at a stage: peak_in_flight of its list.
int in_flight(const ScheduleSettings& settings, const Shape& shape, int stage);

/// The lists of one training step, with the end of the step (tied gradients, norm, update).
/// Throws InputError where the settings do not fit the shape.
OpLists make_schedule(const ScheduleSettings& settings, const Shape& shape);
/// Forward passes only, for evaluation.
OpLists forward_only(const Shape& shape);

ScheduleSettings read_schedule(Fields fields);
Node write_schedule(const ScheduleSettings& settings);

}  // namespace nebula
