#include "exec/connection.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "exec/clocks.hpp"

namespace nebula {
namespace asio = boost::asio;
namespace {

using boost::system::error_code;

// A paced frame is written in pieces of so many bytes, each when the emulated line would deliver
// its end: so the receiver works on it as it comes, as on a real line.
constexpr std::size_t paced_bytes = 4 * tls_record_plain_bytes;

// TLS and TCP bytes up to a position of a frame's plaintext.
std::int64_t wire_position(std::size_t plain) {
  return frame_wire_bytes(std::int64_t(plain) - std::int64_t(frame_header_bytes));
}

}  // namespace

Connection::Connection(int index, std::shared_ptr<TlsStream> stream, EmulatedLink* link,
                       ConnectionEvents& events)
    : index_(index),
      stream_(std::move(stream)),
      link_(link),
      events_(events),
      pace_(stream_->get_executor()) {}

void Connection::start() {
  read_header();
}

void Connection::read_header() {
  asio::async_read(*stream_, asio::buffer(in_bytes_),
                   [self = shared_from_this()](const error_code& error, std::size_t) {
                     if (!self->open_) return;
                     if (error) return self->lose(describe(error, *self->stream_));
                     self->read_payload();
                   });
}

void Connection::read_payload() {
  if (std::string problem = parse_header(in_bytes_, in_); !problem.empty()) {
    return lose(problem, true);
  }
  in_dropped_ = false;
  in_place_ = {};
  if (in_.kind == FrameKind::data) {
    if (std::string problem = events_.place(in_, in_place_, in_dropped_); !problem.empty()) {
      return lose(problem, true);
    }
  }
  if (in_.kind != FrameKind::data || in_dropped_) {
    in_control_.resize(std::size_t(in_.length));
    in_place_ = in_control_;
  }
  if (in_place_.empty()) return finish_frame();
  asio::async_read(*stream_, asio::buffer(in_place_.data(), in_place_.size()),
                   [self = shared_from_this()](const error_code& error, std::size_t) {
                     if (!self->open_) return;
                     if (error) return self->lose(describe(error, *self->stream_));
                     self->finish_frame();
                   });
}

void Connection::finish_frame() {
  if (!checksum_matches(in_bytes_, in_place_)) {
    return lose("a frame whose checksum does not match", true);
  }
  if (!in_dropped_) {
    const auto control = in_.kind == FrameKind::data ? std::span<std::byte>{} : in_place_;
    const auto self = shared_from_this();  // the owner may let go of us
    if (std::string problem = events_.arrived(*this, in_, control); !problem.empty()) {
      return lose(problem, true);
    }
  }
  in_control_ = {};
  if (open_) read_header();
}

void Connection::send(OutgoingFrame frame) {
  if (!open_ || ending_) return;
  if (link_) frame.start_ns = link_->claim(frame.ready_ns, frame_wire_bytes(frame.header.length));
  queue_.push_back(std::move(frame));
  write_next();
}

void Connection::end_with(OutgoingFrame frame) {
  send(std::move(frame));
  ending_ = true;
}

void Connection::break_off_with(OutgoingFrame frame) {
  if (!open_ || ending_) return;
  link_ = nullptr;
  queue_.resize(std::min<std::size_t>(queue_.size(), writing_ || written_ > 0 ? 1 : 0));
  queue_.push_back(std::move(frame));
  ending_ = true;
  pace_.cancel();
  write_next();
}

std::span<const std::byte> Connection::front_payload() const {
  const OutgoingFrame& frame = queue_.front();
  if (!frame.payload) return {};
  return std::span(frame.payload->bytes).subspan(frame.offset, std::size_t(frame.header.length));
}

void Connection::write_next() {
  if (writing_ || !open_ || queue_.empty()) return;
  const std::span<const std::byte> payload = front_payload();
  const std::size_t size = frame_header_bytes + payload.size();

  // The header travels in one TLS record with the payload's beginning, the rest straight from the
  // payload, so that a frame takes ceil(size / record) records.
  const std::size_t first = std::min(size, first_record_.size());
  std::size_t end = written_ == 0 ? first : size;
  if (link_) {
    end = std::min(end, written_ + paced_bytes);
    const std::int64_t due = link_->arrival_ns(queue_.front().start_ns, wire_position(end));
    if (steady_ns() < due) {
      pace_.expires_at(std::chrono::steady_clock::time_point(std::chrono::nanoseconds(due)));
      // Of waits that were cancelled by a later one, none may write twice: write_next looks again.
      pace_.async_wait([self = shared_from_this()](const error_code& cancelled) {
        if (!cancelled) self->write_next();
      });
      return;
    }
  }

  const std::byte* from = nullptr;
  if (written_ == 0) {
    const HeaderBytes header = encode_header(queue_.front().header, payload);
    const auto rest = std::copy(header.begin(), header.end(), first_record_.begin());
    std::copy_n(payload.begin(), first - frame_header_bytes, rest);
    from = first_record_.data();
  } else {
    from = payload.data() + (written_ - frame_header_bytes);
  }
  writing_ = true;
  asio::async_write(*stream_, asio::buffer(from, end - written_),
                    [self = shared_from_this()](const error_code& error, std::size_t bytes) {
                      self->wrote(error, bytes);
                    });
}

void Connection::wrote(const error_code& error, std::size_t bytes) {
  writing_ = false;
  if (!open_) return queue_.clear();
  if (error) return lose(describe(error, *stream_));
  written_ += bytes;
  if (written_ == frame_header_bytes + front_payload().size()) {
    queue_.pop_front();
    written_ = 0;
    if (ending_ && queue_.empty()) return events_.ended(*this);
  }
  write_next();
}

void Connection::lose(const std::string& why, bool violation) {
  if (!open_) return;
  const auto self = shared_from_this();
  events_.lost(*this, why, violation);
}

void Connection::close() {
  if (!open_) return;
  open_ = false;
  pace_.cancel();
  if (!writing_) queue_.clear();
  error_code ignored;
  stream_->next_layer().close(ignored);
}

void Connection::close_softly() {
  if (!open_) return;
  open_ = false;
  pace_.cancel();
  close_gently(stream_);
}

bool Connection::host_vanished(double timeout_s) const {
  tcp_info info{};
  socklen_t size = sizeof info;
  const int socket = stream_->next_layer().native_handle();
  if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  // With a full window, probes take the place of data; each one acknowledged resets their count.
  const bool owed = info.tcpi_unacked > 0 || info.tcpi_probes > 1;
  return owed && double(info.tcpi_last_ack_recv) * 1e-3 > timeout_s;
}

}  // namespace nebula
