#include "exec/listener.hpp"

#include <chrono>
#include <utility>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/v6_only.hpp>

#include "core/error.hpp"
#include "exec/greeting.hpp"
#include "exec/little_endian.hpp"

namespace nebula {
namespace asio = boost::asio;
namespace {

using asio::ip::tcp;
using boost::system::error_code;

// Guests that may be in their greeting at once; more are turned away unheard.
constexpr int most_guests = 64;

error_code bind(tcp::acceptor& acceptor, const tcp::endpoint& at, bool both_families) {
  error_code error;
  acceptor.open(at.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && both_families) acceptor.set_option(asio::ip::v6_only(false), error);
  if (!error) acceptor.bind(at, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    error_code ignored;
    acceptor.close(ignored);
  }
  return error;
}

}  // namespace

// One connection before it is admitted or refused.
struct Listener::Guest {
  Guest(Listener& l, tcp::socket socket)
      : guests(l.guests_),
        stream(std::make_shared<TlsStream>(std::move(socket), l.tls_)),
        address(peer_address(*stream)),
        timer(l.io_) {
    ++*guests;
  }
  ~Guest() { --*guests; }

  std::shared_ptr<int> guests;
  std::shared_ptr<TlsStream> stream;
  std::string address;
  asio::steady_timer timer;
  bool late = false;
};

Listener::Listener(asio::io_context& io, asio::ssl::context& tls, const TransportOptions& options,
                   Admit admit)
    : io_(io), tls_(tls), options_(options), admit_(std::move(admit)), acceptor_(io), pause_(io) {
  const auto port = static_cast<unsigned short>(options.own.port);
  error_code error;
  const auto address = asio::ip::make_address(
      options.own.host == "localhost" ? "127.0.0.1" : options.own.host, error);
  if (!error && address.is_loopback()) {
    error = bind(acceptor_, {address, port}, false);
  } else {
    error = bind(acceptor_, {tcp::v6(), port}, true);
    if (error && error != asio::error::address_in_use) {
      error = bind(acceptor_, {tcp::v4(), port}, false);
    }
  }
  if (error) {
    throw RunError(stage_name(options.own) + " cannot listen on port " +
                   std::to_string(options.own.port) + ": " + error.message());
  }
  port_ = acceptor_.local_endpoint().port();
}

void Listener::start() {
  accept();
}

void Listener::stop() {
  error_code ignored;
  acceptor_.close(ignored);
  pause_.cancel();
}

void Listener::accept() {
  acceptor_.async_accept([this](const error_code& error, tcp::socket socket) {
    if (!acceptor_.is_open()) return;
    if (error) {  // out of file descriptors, or a guest that left at once
      pause_.expires_after(std::chrono::milliseconds(100));
      pause_.async_wait([this](const error_code& cancelled) {
        if (!cancelled) accept();
      });
      return;
    }
    greet(std::move(socket));
    accept();
  });
}

void Listener::greet(tcp::socket socket) {
  const auto guest = std::make_shared<Guest>(*this, std::move(socket));
  if (*guests_ > most_guests) return refuse(guest, "too many strangers at once", false);
  guest->timer.expires_after(std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(options_.handshake_timeout_s)));
  guest->timer.async_wait([guest](const error_code& cancelled) {
    if (cancelled) return;
    guest->late = true;
    error_code ignored;
    guest->stream->next_layer().cancel(ignored);
  });
  guest->stream->async_handshake(asio::ssl::stream_base::server,
                                 [this, guest](const error_code& error) {
                                   if (guest->late) return refuse(guest, "says nothing", false);
                                   if (error) {
                                     return refuse(guest, describe(error, *guest->stream), false);
                                   }
                                   hear(guest);
                                 });
}

void Listener::hear(const std::shared_ptr<Guest>& guest) {
  read_control_frame(guest->stream, [this, guest](const ReadFrame& read) {
    if (guest->late) return refuse(guest, "says no hello", false);
    if (read.error) return refuse(guest, describe(read.error, *guest->stream), false);
    if (!read.problem.empty()) return refuse(guest, read.problem, true);
    judge(guest, read.frame);
  });
}

void Listener::judge(const std::shared_ptr<Guest>& guest, const Frame& frame) {
  Hello hello;
  if (frame.header.kind != FrameKind::hello) return refuse(guest, "says no hello", true);
  if (std::string problem = parse_hello(frame.payload, hello); !problem.empty()) {
    return refuse(guest, problem, true);
  }
  const std::string why =
      admit_(frame.header, hello, certified_cloud(*guest->stream), guest->stream);
  if (!why.empty()) return refuse(guest, why, true);
  guest->timer.cancel();
}

void Listener::refuse(const std::shared_ptr<Guest>& guest, const std::string& why, bool tell) {
  if (!acceptor_.is_open()) return;  // the run is over
  ++refused_;
  guest->timer.cancel();
  if (options_.log) {
    options_.log(LogLevel::warning, stage_name(options_.own) + " refused a connection from " +
                                        guest->address + ": " + why);
  }
  if (!tell) return close_gently(guest->stream);
  const Frame frame =
      control_frame(FrameKind::refuse, options_.plan_hash, options_.own.stage, 0, to_bytes(why));
  // The timer closes what does not even read its refusal.
  guest->timer.expires_after(std::chrono::seconds(2));
  guest->timer.async_wait([guest](const error_code& cancelled) {
    error_code ignored;
    if (!cancelled) guest->stream->next_layer().close(ignored);
  });
  write_frame(guest->stream, frame, [guest](const error_code&) {
    guest->timer.cancel();
    close_gently(guest->stream);
  });
}

}  // namespace nebula
