#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "exec/frame.hpp"
#include "exec/tls.hpp"
#include "exec/wan_emulation.hpp"

namespace nebula {

/// A payload on its way out, shared by the frames that carry its parts; counted until all of them
/// are written.
struct QueuedPayload {
  QueuedPayload(std::vector<std::byte> payload, std::atomic<std::int64_t>& counter)
      : bytes(std::move(payload)), queued_bytes(counter) {
    queued_bytes += std::int64_t(bytes.size());
  }
  ~QueuedPayload() { queued_bytes -= std::int64_t(bytes.size()); }
  QueuedPayload(const QueuedPayload&) = delete;
  QueuedPayload& operator=(const QueuedPayload&) = delete;

  const std::vector<std::byte> bytes;
  std::atomic<std::int64_t>& queued_bytes;
};

struct OutgoingFrame {
  FrameHeader header;
  /// The frame's payload is header.length bytes of it, from `offset` on. Null when there is none.
  std::shared_ptr<const QueuedPayload> payload;
  std::size_t offset = 0;
  /// steady_ns() when it was ready to leave.
  std::int64_t ready_ns = 0;
  /// When its first byte leaves the emulated line.
  std::int64_t start_ns = 0;
};

class Connection;

/// What a connection tells its owner, on the I/O thread. Strings are problems that end the
/// connection; empty is fine.
class ConnectionEvents {
 public:
  virtual ~ConnectionEvents() = default;
  /// A data frame begins: where its payload belongs, or `drop`.
  virtual std::string place(const FrameHeader& header, std::span<std::byte>& where, bool& drop) = 0;
  /// A frame is complete; `control` is the payload of what isn't data.
  virtual std::string arrived(Connection& connection, const FrameHeader& header,
                              std::span<const std::byte> control) = 0;
  /// The last frame of end_with() is written.
  virtual void ended(Connection& connection) = 0;
  /// The connection is gone, by itself or because of `violation` of the protocol by the peer.
  virtual void lost(Connection& connection, const std::string& why, bool violation) = 0;
};

/// One TLS connection of a pair of stages: frames in and out, in order, the outgoing ones at the
/// pace of the emulated line if there is one. Lives on the I/O thread.
class Connection final : public std::enable_shared_from_this<Connection> {
 public:
  /// `link` may be null; it and `events` outlive the connection.
  Connection(int index, std::shared_ptr<TlsStream> stream, EmulatedLink* link,
             ConnectionEvents& events);

  void start();
  void send(OutgoingFrame frame);
  /// `frame` is the last one; what is sent after it is dropped.
  void end_with(OutgoingFrame frame);
  /// Like end_with, but ahead of all that waits and without emulation.
  void break_off_with(OutgoingFrame frame);
  void close();
  /// Closes when the other side has, or after a while.
  void close_softly();

  int index() const { return index_; }
  bool idle() const { return queue_.empty(); }
  /// True when the other host has acknowledged nothing for so long although it should have.
  bool host_vanished(double timeout_s) const;

  /// For the owner.
  bool got_goodbye = false;
  bool sent_goodbye = false;

 private:
  void read_header();
  void read_payload();
  void finish_frame();
  void write_next();
  void wrote(const boost::system::error_code& error, std::size_t bytes);
  void lose(const std::string& why, bool violation = false);
  std::span<const std::byte> front_payload() const;

  const int index_;
  std::shared_ptr<TlsStream> stream_;
  EmulatedLink* link_;
  ConnectionEvents& events_;
  bool open_ = true;

  HeaderBytes in_bytes_{};
  FrameHeader in_;
  std::span<std::byte> in_place_;
  std::vector<std::byte> in_control_;
  bool in_dropped_ = false;

  std::deque<OutgoingFrame> queue_;
  bool writing_ = false;
  bool ending_ = false;
  /// Header and payload that have been written of the front frame.
  std::size_t written_ = 0;
  /// Its first TLS record.
  std::array<std::byte, tls_record_plain_bytes> first_record_;
  boost::asio::steady_timer pace_;
};

}  // namespace nebula
