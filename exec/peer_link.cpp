#include "exec/peer_link.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/units.hpp"
#include "exec/little_endian.hpp"

namespace nebula {
namespace {

// Parts are not cut smaller: below, the cost of a frame exceeds what a second connection gains.
constexpr std::int64_t least_part_bytes = 64 * 1024;
// Samples of the peer's clock before connect() returns.
constexpr int least_clock_samples = 8;
constexpr auto heartbeat_period = std::chrono::seconds(1);

void log(const LinkServices& services, LogLevel level, const std::string& text) {
  if (services.options.log) services.options.log(level, text);
}

std::string hash_text(std::uint64_t hash) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[hash >> shift & 15];
  return text;
}

}  // namespace

PeerLink::PeerLink(const LinkServices& services, const PeerOptions& peer)
    : services_(services),
      peer_(peer),
      name_(stage_name(peer.endpoint)),
      connections_(std::size_t(peer.connections)),
      heartbeat_(services.io) {
  if (peer.emulation) emulated_ = std::make_unique<EmulatedLink>(*peer.emulation);
  stats_.stage = peer.endpoint.stage;
  services_.board.update(peer.endpoint.stage, [](PeerState&) {});
}

Frame PeerLink::greeting(FrameKind kind, int connection) const {
  const TransportOptions& options = services_.options;
  Hello hello;
  hello.data_hash = options.data_hash;
  hello.process = services_.process;
  hello.start_step = options.start_step;
  hello.connection = connection;
  hello.connections = peer_.connections;
  hello.cloud = options.own.cloud;
  return control_frame(kind, options.plan_hash, options.own.stage, peer_.endpoint.stage,
                       encode_hello(hello));
}

std::string PeerLink::refusal(const FrameHeader& header, const Hello& hello,
                              const std::string& certified) const {
  const TransportOptions& options = services_.options;
  if (failed_) return stage_name(options.own) + " has given up";
  if (certified != peer_.endpoint.cloud || hello.cloud != peer_.endpoint.cloud) {
    return "stage " + std::to_string(peer_.endpoint.stage) + " belongs to cloud " +
           peer_.endpoint.cloud + ", the certificate is of cloud " + certified +
           " and the process says " + hello.cloud;
  }
  if (header.run != options.plan_hash) {
    return "its plan " + hash_text(header.run) + " is not " + hash_text(options.plan_hash) +
           " of " + stage_name(options.own) + ": give every cloud the same plan file";
  }
  if (hello.data_hash != options.data_hash) {
    return "its training data are not those of " + stage_name(options.own);
  }
  if (hello.start_step != options.start_step) {
    return "it starts at step " + std::to_string(hello.start_step) + ", " +
           stage_name(options.own) + " at step " + std::to_string(options.start_step) +
           ": resume all stages from the same checkpoint";
  }
  if (hello.connections != peer_.connections) {
    return "it wants " + std::to_string(hello.connections) + " connections, " +
           stage_name(options.own) + " " + std::to_string(peer_.connections);
  }
  if (connections_[std::size_t(hello.connection)] ||
      (peer_process_ != 0 && peer_process_ != hello.process)) {
    return name_ + " is connected already";
  }
  return {};
}

void PeerLink::join(const Hello& hello, std::shared_ptr<TlsStream> stream, const Frame* first) {
  boost::system::error_code ignored;
  stream->next_layer().set_option(boost::asio::ip::tcp::no_delay(true), ignored);
  auto connection =
      std::make_shared<Connection>(hello.connection, std::move(stream), emulated_.get(), *this);
  connections_[std::size_t(hello.connection)] = connection;
  peer_process_ = hello.process;
  ++joined_;
  if (first) connection->send(outgoing(*first));
  connection->start();
  ping(*connection);
  services_.board.update(peer_.endpoint.stage, [](PeerState& state) { ++state.joined; });
  if (complete()) {
    beat();
    check_ready();
  }
}

bool PeerLink::complete() const {
  return joined_ == int(connections_.size());
}

void PeerLink::check_ready() {
  if (ready_ || !complete() || clock_.samples() < least_clock_samples) return;
  ready_ = true;
  log(services_, LogLevel::info,
      "connected to " + name_ + ": " + std::to_string(peer_.connections) +
          (peer_.connections == 1 ? " connection" : " connections") + ", RTT " +
          format_seconds(clock_.rtt_s()));
  services_.board.update(peer_.endpoint.stage, [](PeerState& state) { state.ready = true; });
}

OutgoingFrame PeerLink::outgoing(const Frame& frame) const {
  OutgoingFrame out;
  out.header = frame.header;
  out.payload = std::make_shared<QueuedPayload>(frame.payload, services_.queued_bytes);
  out.ready_ns = steady_ns();
  return out;
}

void PeerLink::send(FrameHeader header, std::shared_ptr<const QueuedPayload> payload,
                    std::int64_t ready_ns) {
  header.total = std::int64_t(payload->bytes.size());
  const auto most = std::int64_t(connections_.size());
  const auto needed = (header.total + max_frame_payload_bytes - 1) / max_frame_payload_bytes;
  header.parts =
      int(std::max(std::clamp<std::int64_t>(header.total / least_part_bytes, 1, most), needed));
  ++stats_.messages_sent;
  for (header.part = 0; header.part < header.parts; ++header.part) {
    const std::int64_t begin = part_begin(header.total, header.part, header.parts);
    header.length = part_begin(header.total, header.part + 1, header.parts) - begin;
    stats_.wire_bytes_sent += frame_wire_bytes(header.length);
    const auto& connection = connections_[next_++ % connections_.size()];
    if (connection) connection->send({header, payload, std::size_t(begin), ready_ns, 0});
  }
}

std::string PeerLink::place(const FrameHeader& header, std::span<std::byte>& where, bool& drop) {
  const TransportOptions& options = services_.options;
  if (header.run != options.plan_hash || header.message.to != options.own.stage ||
      header.message.from != peer_.endpoint.stage) {
    return "a message that belongs elsewhere: " + to_string(header.message);
  }
  if (std::string problem = assembly_.check(header); !problem.empty()) return problem;
  if (assembly_.is_new(header) && !services_.mailbox.reserve(header.total)) {
    return "more than " + format_bytes(double(options.receive_buffer_bytes)) +
           " of messages that nobody has asked for";
  }
  const Assembly::Place place = assembly_.place(header);
  if (place.duplicate) ++stats_.duplicates;
  drop = place.duplicate;
  where = place.bytes;
  return {};
}

std::string PeerLink::arrived(Connection& connection, const FrameHeader& header,
                              std::span<const std::byte> control) {
  if (header.kind != FrameKind::data) return arrived_control(connection, header.kind, control);
  stats_.wire_bytes_received += frame_wire_bytes(header.length);
  Received received;
  if (!assembly_.finish(header, received)) return {};
  ++stats_.messages_received;
  received.arrived_ns = services_.clock.now_ns();
  received.sent_ns = clock_.to_own(received.sent_ns);
  services_.mailbox.put({header.step, header.message}, std::move(received));
  return {};
}

std::string PeerLink::arrived_control(Connection& connection, FrameKind kind,
                                      std::span<const std::byte> payload) {
  switch (kind) {
    case FrameKind::ping: {
      Ping answer;
      if (std::string problem = parse_ping(payload, answer); !problem.empty()) return problem;
      answer.received_ns = services_.clock.now_ns();
      answer.answered_ns = answer.received_ns;
      connection.send(outgoing(control_frame(FrameKind::pong, services_.options.plan_hash,
                                             services_.options.own.stage, peer_.endpoint.stage,
                                             encode_ping(answer))));
      return {};
    }
    case FrameKind::pong:
      return got_pong(connection, payload);
    case FrameKind::abort:
      fail(name_ + " failed: " + printable(payload), false);
      return {};
    case FrameKind::goodbye:
      got_goodbye(connection);
      return {};
    default:
      return "a greeting in the middle of a run";
  }
}

void PeerLink::ping(Connection& connection) {
  Ping question;
  question.sent_ns = services_.clock.now_ns();
  connection.send(outgoing(control_frame(FrameKind::ping, services_.options.plan_hash,
                                         services_.options.own.stage, peer_.endpoint.stage,
                                         encode_ping(question))));
}

std::string PeerLink::got_pong(Connection& connection, std::span<const std::byte> payload) {
  Ping pong;
  if (std::string problem = parse_ping(payload, pong); !problem.empty()) return problem;
  clock_.add(pong, services_.clock.now_ns());
  stats_.rtt_s = clock_.rtt_s();
  stats_.clock_offset_s = clock_.offset_s();
  if (clock_.samples() < least_clock_samples) ping(connection);
  check_ready();
  return {};
}

// Once a second: a ping where nothing waits to be written (so that they don't pile up), and a look
// whether the host still acknowledges.
void PeerLink::beat() {
  for (const auto& connection : connections_) {
    if (failed_) return;
    if (connection->got_goodbye) continue;
    if (connection->idle()) ping(*connection);
    if (connection->host_vanished(services_.options.host_timeout_s)) {
      return lost(*connection,
                  "its host has acknowledged nothing for " +
                      format_seconds(services_.options.host_timeout_s),
                  false);
    }
  }
  heartbeat_.expires_after(heartbeat_period);
  heartbeat_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled && !failed_) beat();
  });
}

void PeerLink::say_goodbye() {
  for (const auto& connection : connections_) {
    if (!connection) continue;
    connection->end_with(
        outgoing(control_frame(FrameKind::goodbye, services_.options.plan_hash,
                               services_.options.own.stage, peer_.endpoint.stage)));
  }
}

void PeerLink::got_goodbye(Connection& connection) {
  connection.got_goodbye = true;
  if (complete() && std::all_of(connections_.begin(), connections_.end(),
                                [](const auto& c) { return c->got_goodbye; })) {
    services_.mailbox.end(peer_.endpoint.stage, name_ + " has ended its run");
  }
  if (connection.sent_goodbye) finish(connection);
}

void PeerLink::ended(Connection& connection) {
  if (failed_) {  // the last frame told why
    connection.close_softly();
    return finish(connection);
  }
  connection.sent_goodbye = true;
  if (connection.got_goodbye) finish(connection);
}

void PeerLink::finish(Connection& connection) {
  connection.close();
  if (++closed_ < joined_) return;
  heartbeat_.cancel();
  services_.board.update(peer_.endpoint.stage, [](PeerState& state) { state.closed = true; });
}

void PeerLink::lost(Connection& connection, const std::string& why, bool violation) {
  // A peer that ended first, as it may, or one that was told why and left.
  if (connection.got_goodbye || failed_) return finish(connection);
  fail(name_ + (violation ? " sent " : " is gone: ") + why, violation);
}

void PeerLink::fail(const std::string& why, bool tell) {
  if (failed_) return;
  log(services_, LogLevel::warning, why);
  services_.mailbox.fail(why);
  services_.board.fail(why);
  if (tell) return abort(why);
  close();
}

void PeerLink::abort(const std::string& why) {
  if (failed_) return;
  failed_ = true;
  heartbeat_.cancel();
  const Frame frame =
      control_frame(FrameKind::abort, services_.options.plan_hash, services_.options.own.stage,
                    peer_.endpoint.stage, to_bytes(std::string_view(why).substr(0, 2000)));
  for (const auto& connection : connections_) {
    if (connection) connection->break_off_with(outgoing(frame));
  }
  if (joined_ == 0) close();
}

void PeerLink::close() {
  failed_ = true;
  heartbeat_.cancel();
  for (const auto& connection : connections_) {
    if (connection) connection->close();
  }
  services_.board.update(peer_.endpoint.stage, [](PeerState& state) { state.closed = true; });
}

}  // namespace nebula
