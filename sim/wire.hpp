#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "core/step_costs.hpp"
#include "core/timeline.hpp"
#include "sim/engine_units.hpp"

namespace nebula {

/// Both ends of a line: hosts with one link between them.
struct LineEnds {
  simgrid::s4u::Host* from = nullptr;
  simgrid::s4u::Host* to = nullptr;
};

/// Carries the messages of one case between the stages.
///
/// What one stage sends to another along one line goes over the same connections, in order: a
/// message occupies them for as long as its bytes need, then the next one follows while the first
/// still pays its latency. A message over n connections is n SimGrid transfers that start and end
/// together, so lines are shared by the connection, as TCP shares them.
///
/// Plain members are safe without locks: of all actors, one runs at a time.
class Wire {
 public:
  /// Starts an actor for every connection that the case's channels can use. Events go to `sink`.
  Wire(simgrid::s4u::Engine& engine, const StepCosts& costs, int steps, const EngineUnits& units,
       const std::vector<LineEnds>& lines, EventSink& sink);

  /// Called by the sender's actor; never blocks.
  void send(int step, const Message& message);
  /// True once the message's last byte has left the line, so that its arrival is known.
  bool has_left(int step, const Message& message);
  /// Called by the receiver's actor: blocks until has_left().
  void await(int step, const Message& message);
  /// Of a message that has left the line.
  double arrival_s(int step, const Message& message);

  /// "stage 1 waits for activation 3 from stage 0 to stage 1", of all stages that wait.
  std::string waiting() const;

 private:
  /// One message of one step.
  struct Letter {
    double arrival_s = 0;
    bool sent = false;
    /// The receiver is blocked on it.
    bool awaited = false;
  };
  struct Parcel {
    int step = 0;
    Message message;
    double ready_s = 0;
  };
  /// The connections from one stage to another along one line.
  struct Connection {
    std::deque<Parcel> queue;
    bool idle = false;
    simgrid::s4u::SemaphorePtr more;
  };
  struct Reader {
    simgrid::s4u::SemaphorePtr arrived;
    const Message* wanted = nullptr;
  };

  Letter& letter(int step, const Message& message);
  void carry(const LineEnds& line, Connection& connection);
  void deliver(const Parcel& parcel, const ChannelCosts& channel);
  void add_connection(simgrid::s4u::Engine& engine, int from, int to, int line,
                      const std::vector<LineEnds>& lines);

  const StepCosts& costs_;
  const EngineUnits& units_;
  EventSink& sink_;
  std::vector<Letter> letters_;
  std::vector<Reader> readers_;
  /// By from, to and line; never moves while actors run.
  std::map<std::array<int, 3>, Connection> connections_;
};

}  // namespace nebula
