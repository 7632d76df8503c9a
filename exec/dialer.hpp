#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "exec/control.hpp"
#include "exec/greeting.hpp"
#include "exec/tls.hpp"
#include "exec/transport_options.hpp"

namespace nebula {

/// Dials one connection to a peer, again and again while nobody answers, until it stands, is
/// refused or is told to stop. Lives on the I/O thread.
class Dialer : public std::enable_shared_from_this<Dialer> {
 public:
  struct Outcomes {
    /// Takes the stream, or returns why the answer won't do.
    std::function<std::string(const FrameHeader&, const Hello&, const std::string& cloud,
                              const std::shared_ptr<TlsStream>&)>
        welcome;
    /// No use trying again.
    std::function<void(const std::string& why)> give_up;
    /// What stood in the way of the last attempt.
    std::function<void(const std::string& why)> problem;
  };

  /// `hello` is the frame to begin with.
  Dialer(boost::asio::io_context& io, boost::asio::ssl::context& tls, const Endpoint& to,
         Frame hello, double attempt_timeout_s, Outcomes outcomes);

  void start() { resolve(); }
  void stop();

 private:
  void resolve();
  void dial(const boost::asio::ip::tcp::resolver::results_type& addresses);
  void shake_hands();
  void greet();
  void hear(const ReadFrame& read);
  void retry(const std::string& why);
  void give_up(const std::string& why);
  void limit_attempt();

  boost::asio::ssl::context& tls_;
  const Endpoint to_;
  const Frame hello_;
  const double attempt_timeout_s_;
  Outcomes outcomes_;
  boost::asio::ip::tcp::resolver resolver_;
  std::shared_ptr<TlsStream> stream_;
  boost::asio::steady_timer attempt_timer_;
  boost::asio::steady_timer pause_;
  double pause_s_ = 0.1;
  bool late_ = false;
  bool stopped_ = false;
};

}  // namespace nebula
