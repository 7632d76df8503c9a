#include "sim/wire.hpp"

#include <array>

namespace nebula {
namespace {

namespace s4u = simgrid::s4u;

constexpr std::size_t message_kinds = std::size_t(MessageKind::tied_gradient) + 1;

}  // namespace

Wire::Wire(s4u::Engine& engine, const StepCosts& costs, int steps, const EngineUnits& units,
           const std::vector<LineEnds>& lines, EventSink& sink)
    : costs_(costs), units_(units), sink_(sink) {
  const Shape& shape = costs.shape;
  letters_.resize(std::size_t(steps) * std::size_t(shape.stages) * message_kinds *
                  std::size_t(shape.chunks) * std::size_t(shape.micro_batches));
  for (int s = 0; s < shape.stages; ++s) {
    readers_.push_back({s4u::Semaphore::create(0), nullptr});
  }
  for (int s = 0; s + 1 < shape.stages; ++s) {
    const auto b = std::size_t(s);
    for (const auto* channels : {&costs.forward, &costs.norm_forward}) {
      add_connection(engine, s, s + 1, (*channels)[b].line, lines);
    }
    for (const auto* channels : {&costs.backward, &costs.norm_backward}) {
      add_connection(engine, s + 1, s, (*channels)[b].line, lines);
    }
  }
  if (shape.tied && shape.stages > 1) {
    add_connection(engine, 0, shape.stages - 1, costs.tied_forward.line, lines);
    add_connection(engine, shape.stages - 1, 0, costs.tied_backward.line, lines);
  }
}

void Wire::add_connection(s4u::Engine& engine, int from, int to, int line,
                          const std::vector<LineEnds>& lines) {
  if (line < 0) return;
  const auto [at, added] = connections_.try_emplace({from, to, line});
  if (!added) return;
  Connection& connection = at->second;
  connection.more = s4u::Semaphore::create(0);
  const LineEnds ends = lines[std::size_t(line)];
  simgrid_compat::add_actor(engine, "connection", ends.from, [this, ends, &connection] {
    carry(ends, connection);
  })->daemonize();
}

Wire::Letter& Wire::letter(int step, const Message& message) {
  const Shape& shape = costs_.shape;
  std::size_t index = std::size_t(step) * std::size_t(shape.stages) + std::size_t(message.from);
  index = index * message_kinds + std::size_t(message.kind);
  index = index * std::size_t(shape.chunks) + std::size_t(message.chunk);
  index = index * std::size_t(shape.micro_batches) + std::size_t(message.micro_batch);
  return letters_[index];
}

void Wire::send(int step, const Message& message) {
  const ChannelCosts& channel = costs_.channel(message);
  const Parcel parcel{step, message, units_.now()};
  if (channel.line < 0 || channel.bytes <= 0) {
    deliver(parcel, channel);
    return;
  }
  Connection& connection = connections_.at({message.from, message.to, channel.line});
  connection.queue.push_back(parcel);
  if (!connection.idle) return;
  connection.idle = false;
  connection.more->release();
}

// The life of a connection's actor.
void Wire::carry(const LineEnds& line, Connection& connection) {
  std::vector<s4u::CommPtr> parts;
  while (true) {
    while (connection.queue.empty()) {
      connection.idle = true;
      connection.more->acquire();
    }
    const Parcel parcel = connection.queue.front();
    connection.queue.pop_front();
    const ChannelCosts& channel = costs_.channel(parcel.message);
    const std::uint64_t size = units_.size(channel.bytes / channel.connections);
    for (int i = 0; i < channel.connections; ++i) {
      parts.push_back(simgrid_compat::start_transfer(line.from, line.to, size));
    }
    for (const auto& part : parts) part->wait();
    parts.clear();
    deliver(parcel, channel);
  }
}

void Wire::deliver(const Parcel& parcel, const ChannelCosts& channel) {
  const Message& message = parcel.message;
  Letter& post = letter(parcel.step, message);
  post.sent = true;
  post.arrival_s = units_.now() + channel.latency_s;
  Event event;
  event.kind = EventKind::transfer;
  event.step = parcel.step;
  event.stage = message.to;
  event.peer = message.from;
  event.message = message.kind;
  event.micro_batch = message.micro_batch;
  event.start_s = parcel.ready_s;
  event.end_s = post.arrival_s;
  event.bytes = channel.bytes;
  sink_.record(event);
  if (post.awaited) readers_[std::size_t(message.to)].arrived->release();
}

bool Wire::has_left(int step, const Message& message) {
  return letter(step, message).sent;
}

void Wire::await(int step, const Message& message) {
  Letter& post = letter(step, message);
  if (post.sent) return;
  Reader& reader = readers_[std::size_t(message.to)];
  post.awaited = true;
  reader.wanted = &message;
  reader.arrived->acquire();
  reader.wanted = nullptr;
}

double Wire::arrival_s(int step, const Message& message) {
  return letter(step, message).arrival_s;
}

std::string Wire::waiting() const {
  std::string text;
  for (std::size_t s = 0; s < readers_.size(); ++s) {
    if (!readers_[s].wanted) continue;
    text += (text.empty() ? "stage " : ", stage ") + std::to_string(s) + " waits for " +
            to_string(*readers_[s].wanted);
  }
  return text;
}

}  // namespace nebula
