#include "core/schedules.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace nebula {
namespace {

std::vector<Op> gpipe_ops(int micro_batches) {
  std::vector<Op> ops;
  for (int i = 0; i < micro_batches; ++i) ops.push_back({OpKind::forward, i, 0});
  for (int i = 0; i < micro_batches; ++i) ops.push_back({OpKind::backward, i, 0});
  return ops;
}

// `depth` forwards ahead, then one backward and one forward in turn.
std::vector<Op> one_f_one_b_ops(int micro_batches, int depth) {
  std::vector<Op> ops;
  const int ahead = std::min(depth, micro_batches);
  for (int i = 0; i < ahead; ++i) ops.push_back({OpKind::forward, i, 0});
  for (int i = 0; i < micro_batches; ++i) {
    ops.push_back({OpKind::backward, i, 0});
    if (i + ahead < micro_batches) ops.push_back({OpKind::forward, i + ahead, 0});
  }
  return ops;
}

void check_depths(const ScheduleSettings& settings, const Shape& shape) {
  const auto& depths = settings.in_flight;
  if (int(depths.size()) != shape.stages) {
    throw InputError("schedule.in_flight", "has " + std::to_string(depths.size()) +
                                               " depths, expected one for each of the " +
                                               std::to_string(shape.stages) + " stages");
  }
  for (std::size_t s = 0; s < depths.size(); ++s) {
    if (depths[s] < 1) throw InputError("schedule.in_flight", "holds a depth of less than 1");
    if (s > 0 && depths[s] > depths[s - 1]) {
      throw InputError("schedule.in_flight", "grows from stage " + std::to_string(s - 1) +
                                                 " to stage " + std::to_string(s) +
                                                 ": the later one would wait for ever");
    }
  }
}

// Where the tied gradient and the norm stand is said in schedule.hpp: the last stage finishes its
// backwards first, so it hands its share over at once and counts the tied table at stage 0.
void end_step(std::vector<Op>& ops, const Shape& shape, int stage) {
  const bool last = stage == shape.stages - 1;
  const bool ties = shape.tied && shape.stages > 1 && (stage == 0 || last);
  if (ties) ops.push_back({OpKind::tie_send});
  if (ties && stage == 0) ops.push_back({OpKind::tie_receive});
  ops.push_back({OpKind::sum_norm});
  if (ties && last) ops.push_back({OpKind::tie_receive});
  if (stage > 0) ops.push_back({OpKind::share_norm});
  ops.push_back({OpKind::update});
}

}  // namespace

std::string_view to_string(ScheduleKind kind) {
  return kind == ScheduleKind::gpipe ? "gpipe" : "1f1b";
}

ScheduleSettings one_f_one_b(const Shape& shape, int extra) {
  ScheduleSettings settings;
  settings.kind = ScheduleKind::one_f_one_b;
  for (int stage = 0; stage < shape.stages; ++stage) {
    const int hops = shape.stages - 1 - stage;
    settings.in_flight.push_back(std::min(shape.micro_batches, 1 + hops * (1 + extra)));
  }
  return settings;
}

ScheduleSettings gpipe() {
  return {ScheduleKind::gpipe, {}};
}

int in_flight(const ScheduleSettings& settings, const Shape& shape, int stage) {
  if (settings.kind == ScheduleKind::gpipe) return shape.micro_batches;
  return std::min(settings.in_flight[std::size_t(stage)], shape.micro_batches);
}

OpLists make_schedule(const ScheduleSettings& settings, const Shape& shape) {
  const bool is_gpipe = settings.kind == ScheduleKind::gpipe;
  if (shape.chunks != 1) {
    throw InputError("schedule", std::string(to_string(settings.kind)) + " has one chunk a stage");
  }
  if (is_gpipe && !settings.in_flight.empty()) {
    throw InputError("schedule.in_flight", "gpipe keeps all micro-batches in flight; leave it out");
  }
  if (!is_gpipe) check_depths(settings, shape);
  OpLists lists;
  for (int stage = 0; stage < shape.stages; ++stage) {
    lists.push_back(
        is_gpipe ? gpipe_ops(shape.micro_batches)
                 : one_f_one_b_ops(shape.micro_batches, settings.in_flight[std::size_t(stage)]));
    end_step(lists.back(), shape, stage);
  }
  return lists;
}

OpLists forward_only(const Shape& shape) {
  OpLists lists(std::size_t(shape.stages));
  for (auto& ops : lists) {
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      for (int i = 0; i < shape.micro_batches; ++i) ops.push_back({OpKind::forward, i, chunk});
    }
  }
  return lists;
}

ScheduleSettings read_schedule(Fields fields) {
  ScheduleSettings settings;
  settings.kind = fields.choice("kind", {"gpipe", "1f1b"}) == 0 ? ScheduleKind::gpipe
                                                                : ScheduleKind::one_f_one_b;
  if (fields.has("in_flight")) settings.in_flight = fields.counts("in_flight");
  fields.finish();
  return settings;
}

Node write_schedule(const ScheduleSettings& settings) {
  TableWriter table;
  table.set("kind", to_string(settings.kind));
  if (settings.kind != ScheduleKind::gpipe) table.set("in_flight", settings.in_flight);
  return table.node();
}

}  // namespace nebula
