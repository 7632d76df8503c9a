#pragma once

#include <algorithm>

#include "core/schedule.hpp"
#include "core/step_costs.hpp"
#include "core/timeline.hpp"
#include "sim/engine_units.hpp"
#include "sim/wire.hpp"

namespace nebula {

/// A stage in simulated time: the World that core's run_stage drives in an actor of the stage's
/// host. Everything that the stage does itself, coding included, takes its turn on that host.
///
/// The stage runs ahead of the engine as long as nobody could tell: what it does between two
/// messages becomes one SimGrid execution, which is what makes simulations cheap.
class SimWorld {
 public:
  SimWorld(const StepCosts& costs, int stage, const EngineUnits& units, Wire& wire, EventSink& sink)
      : costs_(costs), stage_(stage), units_(units), wire_(wire), sink_(sink) {}

  /// Reads the batch.
  void begin_step(int step) {
    step_ = step;
    take_time(event(EventKind::prepare), costs_.stages[std::size_t(stage_)].prepare_s);
  }

  void receive(const Message& message) {
    Event wait = event(EventKind::wait, message, message.from);
    if (!wire_.has_left(step_, message)) {
      catch_up();
      wire_.await(step_, message);
    }
    ahead_s_ = std::max(wait.start_s, wire_.arrival_s(step_, message)) - units_.now();
    wait.end_s = now();
    if (wait.seconds() > units_.resolution()) sink_.record(wait);
    const double seconds = costs_.channel(message).decode_s;
    if (seconds > 0) take_time(event(EventKind::decode, message, message.from), seconds);
  }

  void compute(const Op& op) {
    Event run = event(EventKind::op);
    run.op = op;
    run.micro_batch = op.micro_batch;
    take_time(run, costs_.op_seconds(stage_, op.kind));
  }

  void send(const Message& message) {
    const double seconds = costs_.channel(message).encode_s;
    if (seconds > 0) take_time(event(EventKind::encode, message, message.to), seconds);
    catch_up();
    wire_.send(step_, message);
  }

 private:
  double now() const { return units_.now() + ahead_s_; }
  void catch_up() {
    units_.compute(ahead_s_);
    ahead_s_ = 0;
  }

  Event event(EventKind kind) const {
    Event result;
    result.kind = kind;
    result.step = step_;
    result.stage = stage_;
    result.start_s = now();
    return result;
  }
  Event event(EventKind kind, const Message& message, int peer) const {
    Event result = event(kind);
    result.peer = peer;
    result.message = message.kind;
    result.micro_batch = message.micro_batch;
    return result;
  }
  void take_time(Event event, double seconds) {
    ahead_s_ += seconds;
    event.end_s = now();
    sink_.record(event);
  }

  const StepCosts& costs_;
  const int stage_;
  const EngineUnits& units_;
  Wire& wire_;
  EventSink& sink_;
  int step_ = 0;
  /// By how much the stage's own time is ahead of the engine's.
  double ahead_s_ = 0;
};

}  // namespace nebula
