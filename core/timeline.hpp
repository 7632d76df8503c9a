#pragma once

#include <string>
#include <vector>

#include "core/schedule.hpp"

namespace nebula {

/// Everything that takes time at a stage or on a link.
enum class EventKind {
  op,        ///< `op` ran
  wait,      ///< the stage stood still until `message` arrived
  encode,    ///< of `message`, at its sender
  decode,    ///< of `message`, at its receiver
  transfer,  ///< `message` from ready-to-send at `peer` to arrived at `stage`; recorded there
  prepare,   ///< reading the step's batch and clearing gradients
  save,      ///< checkpoint
  evaluate,  ///< held-out loss
};
std::string_view to_string(EventKind kind);

/// One thing that took time. Times are seconds since the timeline's origin.
struct Event {
  EventKind kind = EventKind::op;
  int step = 0;
  int stage = 0;
  /// The other stage of wait, encode, decode and transfer; -1 otherwise.
  int peer = -1;
  /// For kind op.
  Op op = {};
  /// For wait, encode, decode, transfer.
  MessageKind message = MessageKind::activation;
  int micro_batch = -1;
  double start_s = 0;
  double end_s = 0;
  /// On the wire, with framing; transfers only.
  double bytes = 0;
  bool operator==(const Event&) const = default;

  double seconds() const { return end_s - start_s; }
};

/// Where simulator and executor put what they saw. Implementations: traces/trace_writer, and
/// Timeline below.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void record(const Event& event) = 0;
};

/// Keeps events in memory.
class Timeline final : public EventSink {
 public:
  void record(const Event& event) override { events.push_back(event); }
  std::vector<Event> events;
};

}  // namespace nebula
