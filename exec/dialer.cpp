#include "exec/dialer.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include <boost/asio/connect.hpp>

#include "exec/little_endian.hpp"

namespace nebula {
namespace asio = boost::asio;
namespace {

using asio::ip::tcp;
using boost::system::error_code;

constexpr double longest_pause_s = 1;

std::chrono::nanoseconds to_duration(double s) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(s));
}

}  // namespace

Dialer::Dialer(asio::io_context& io, asio::ssl::context& tls, const Endpoint& to, Frame hello,
               double attempt_timeout_s, Outcomes outcomes)
    : tls_(tls),
      to_(to),
      hello_(std::move(hello)),
      attempt_timeout_s_(attempt_timeout_s),
      outcomes_(std::move(outcomes)),
      resolver_(io),
      attempt_timer_(io),
      pause_(io) {}

void Dialer::stop() {
  stopped_ = true;
  resolver_.cancel();
  attempt_timer_.cancel();
  pause_.cancel();
  error_code ignored;
  if (stream_) stream_->next_layer().close(ignored);
}

void Dialer::resolve() {
  resolver_.async_resolve(
      to_.host, std::to_string(to_.port),
      [self = shared_from_this()](const error_code& error, tcp::resolver::results_type found) {
        if (self->stopped_) return;
        if (error) return self->retry(error.message());
        self->dial(found);
      });
}

void Dialer::limit_attempt() {
  late_ = false;
  attempt_timer_.expires_after(to_duration(attempt_timeout_s_));
  attempt_timer_.async_wait([self = shared_from_this()](const error_code& cancelled) {
    if (cancelled) return;
    self->late_ = true;
    error_code ignored;
    if (self->stream_) self->stream_->next_layer().close(ignored);
  });
}

void Dialer::dial(const tcp::resolver::results_type& addresses) {
  stream_ = std::make_shared<TlsStream>(tcp::socket(attempt_timer_.get_executor()), tls_);
  limit_attempt();
  asio::async_connect(stream_->next_layer(), addresses,
                      [self = shared_from_this()](const error_code& error, const tcp::endpoint&) {
                        if (self->stopped_) return;
                        if (self->late_) return self->retry("no answer");
                        if (error) return self->retry(error.message());
                        self->shake_hands();
                      });
}

void Dialer::shake_hands() {
  stream_->async_handshake(
      asio::ssl::stream_base::client, [self = shared_from_this()](const error_code& error) {
        if (self->stopped_) return;
        if (self->late_) return self->retry("accepts the connection, but says nothing");
        const std::string why = error ? describe(error, *self->stream_) : std::string{};
        if (is_tls_error(error)) return self->give_up("TLS fails: " + why);
        if (error) return self->retry(why);
        // Before we tell it anything.
        if (const std::string cloud = certified_cloud(*self->stream_); cloud != self->to_.cloud) {
          return self->give_up("shows the certificate of cloud " + cloud);
        }
        self->greet();
      });
}

void Dialer::greet() {
  // From here on the peer may have taken the connection: no second attempt beside it.
  attempt_timer_.cancel();
  write_frame(stream_, hello_, [self = shared_from_this()](const error_code&) {
    // Whatever went wrong shows when reading: the reason may have been sent before.
    if (self->stopped_) return;
    read_control_frame(self->stream_, [self](const ReadFrame& read) {
      if (!self->stopped_) self->hear(read);
    });
  });
}

void Dialer::hear(const ReadFrame& read) {
  if (is_tls_error(read.error)) {
    return give_up("refuses this cloud's certificate: " + describe(read.error, *stream_));
  }
  if (read.error) return retry(describe(read.error, *stream_));
  if (!read.problem.empty()) return give_up("answers with " + read.problem);
  const FrameHeader& header = read.frame.header;
  if (header.kind == FrameKind::refuse) {
    return give_up("refuses this process: " + printable(read.frame.payload));
  }
  Hello hello;
  if (header.kind != FrameKind::welcome || header.message.from != to_.stage) {
    return give_up("is not " + stage_name(to_));
  }
  if (const std::string problem = parse_hello(read.frame.payload, hello); !problem.empty()) {
    return give_up("answers with " + problem);
  }
  if (const std::string why = outcomes_.welcome(header, hello, to_.cloud, stream_); !why.empty()) {
    return give_up("won't do: " + why);
  }
  stopped_ = true;
  stream_.reset();
}

void Dialer::retry(const std::string& why) {
  attempt_timer_.cancel();
  outcomes_.problem(why);
  pause_.expires_after(to_duration(pause_s_));
  pause_s_ = std::min(pause_s_ * 1.5, longest_pause_s);
  pause_.async_wait([self = shared_from_this()](const error_code& cancelled) {
    if (!cancelled && !self->stopped_) self->resolve();
  });
}

void Dialer::give_up(const std::string& why) {
  stop();
  outcomes_.give_up(why);
}

}  // namespace nebula
