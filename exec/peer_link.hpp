#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "exec/assembly.hpp"
#include "exec/clocks.hpp"
#include "exec/connection.hpp"
#include "exec/control.hpp"
#include "exec/mailbox.hpp"
#include "exec/peer_board.hpp"
#include "exec/transport.hpp"
#include "exec/transport_options.hpp"

namespace nebula {

/// What all links of a process share; outlives them.
struct LinkServices {
  boost::asio::io_context& io;
  const TransportOptions& options;
  const WallClock& clock;
  Mailbox& mailbox;
  PeerBoard& board;
  std::atomic<std::int64_t>& queued_bytes;
  /// This process, as in its hellos.
  std::uint64_t process = 0;
};

/// All connections to one peer: stripes messages over them, puts them together again, keeps the
/// peer's clock and notices its end. Lives on the I/O thread.
class PeerLink final : public ConnectionEvents {
 public:
  PeerLink(const LinkServices& services, const PeerOptions& peer);

  const PeerOptions& peer() const { return peer_; }
  const std::string& name() const { return name_; }
  const PeerStats& stats() const { return stats_; }

  /// What we say in hello or welcome for a connection.
  Frame greeting(FrameKind kind, int connection) const;
  /// Why a process that says this can't take a connection of this link; empty when it can.
  std::string refusal(const FrameHeader& header, const Hello& hello,
                      const std::string& certified) const;
  /// A connection stands; `first` (if any) is the first frame to send on it.
  void join(const Hello& hello, std::shared_ptr<TlsStream> stream, const Frame* first);

  /// `header` lacks the parts.
  void send(FrameHeader header, std::shared_ptr<const QueuedPayload> payload,
            std::int64_t ready_ns);
  /// After all that was sent: goodbye on every connection. They close once the peer said so too.
  void say_goodbye();
  /// Drops what waits, tells the peer why and closes.
  void abort(const std::string& why);
  void close();

 private:
  std::string place(const FrameHeader& header, std::span<std::byte>& where, bool& drop) override;
  std::string arrived(Connection& connection, const FrameHeader& header,
                      std::span<const std::byte> control) override;
  void ended(Connection& connection) override;
  void lost(Connection& connection, const std::string& why, bool violation) override;

  std::string arrived_control(Connection& connection, FrameKind kind,
                              std::span<const std::byte> payload);
  OutgoingFrame outgoing(const Frame& frame) const;
  void ping(Connection& connection);
  std::string got_pong(Connection& connection, std::span<const std::byte> payload);
  void got_goodbye(Connection& connection);
  void finish(Connection& connection);
  void beat();
  void check_ready();
  /// Ends the link and the run; `tell` sends the peer the reason before closing.
  void fail(const std::string& why, bool tell);
  bool complete() const;

  const LinkServices services_;
  const PeerOptions peer_;
  const std::string name_;
  std::unique_ptr<EmulatedLink> emulated_;
  /// One a connection; null until it stands.
  std::vector<std::shared_ptr<Connection>> connections_;
  std::uint64_t peer_process_ = 0;
  PeerClock clock_;
  Assembly assembly_;
  PeerStats stats_;
  boost::asio::steady_timer heartbeat_;
  /// Connection that the next message starts with.
  std::size_t next_ = 0;
  int joined_ = 0;
  int closed_ = 0;
  bool ready_ = false;
  bool failed_ = false;
};

}  // namespace nebula
