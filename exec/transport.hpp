#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/schedule.hpp"
#include "exec/mailbox.hpp"
#include "exec/transport_options.hpp"

namespace nebula {

/// What passed between this process and one peer since the connections stand.
struct PeerStats {
  int stage = 0;
  /// Of the quickest ping; through the emulated line if there is one.
  double rtt_s = 0;
  /// The peer's clock minus ours.
  double clock_offset_s = 0;
  std::int64_t messages_sent = 0;
  std::int64_t messages_received = 0;
  /// Of messages, with framing and TLS.
  std::int64_t wire_bytes_sent = 0;
  std::int64_t wire_bytes_received = 0;
  /// Parts that came a second time and were dropped.
  std::int64_t duplicates = 0;
};

/// The messages of one stage's process: mutual TLS 1.3 to each peer, over as many connections as
/// the boundary has; the lower stage dials the higher one. A background thread does all the I/O.
///
/// Every failure (a peer that dies, aborts, vanishes or breaks the protocol) ends the run: it is
/// thrown as RunError, with who and why, by all later calls. Strangers at the port are refused,
/// logged, and change nothing.
///
/// Use from one thread, except abort().
class Transport {
 public:
  /// Reads the keys and listens from here on, if a lower stage is among the peers. Throws
  /// InputError for options or key files that are wrong, RunError when the port can't be had.
  explicit Transport(TransportOptions options);
  /// Without close(), tells the peers that this stage stopped.
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// Where it listens (the system's choice when the options say 0); 0 when it doesn't.
  int port() const;

  /// Returns when all connections to all peers stand and the peers' clocks are known. Throws
  /// RunError that names who is missing, who refused, and why.
  void connect();

  /// Queues a message and returns; message.from is this stage.
  void send(int step, const Message& message, std::vector<std::byte> payload);

  /// Waits for a message to this stage, and says so in the log when that takes long.
  Received receive(int step, const Message& message);

  /// Tells the peers why this stage fails, drops what is queued and closes. For a second at most.
  void abort(const std::string& reason) noexcept;

  /// At the end: waits until all that was sent has been read and all peers have ended too, at most
  /// close_timeout_s.
  void close();

  /// Unix ns; the clock of Received's times. Does not jump.
  std::int64_t now_ns() const;
  std::vector<PeerStats> stats() const;
  /// Connections that were refused at the port.
  int refused() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace nebula
