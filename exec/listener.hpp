#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>

#include "exec/control.hpp"
#include "exec/tls.hpp"
#include "exec/transport_options.hpp"

namespace nebula {

/// Takes connections for as long as the run lasts. Whoever shows no certificate of the run, talks
/// nonsense or keeps silent is refused and logged; the others are put before `admit`.
class Listener {
 public:
  /// Takes the stream and answers the hello, or returns why not.
  using Admit =
      std::function<std::string(const FrameHeader&, const Hello&, const std::string& cloud,
                                const std::shared_ptr<TlsStream>&)>;

  /// Throws RunError when the port can't be had. A loopback host is bound as such, any other one on
  /// all interfaces: a public address often isn't one of the host's own.
  Listener(boost::asio::io_context& io, boost::asio::ssl::context& tls,
           const TransportOptions& options, Admit admit);

  int port() const { return port_; }
  /// Connections refused so far; from any thread.
  int refused() const { return refused_; }
  /// The rest on the I/O thread.
  void start();
  void stop();

 private:
  struct Guest;

  void accept();
  void greet(boost::asio::ip::tcp::socket socket);
  void hear(const std::shared_ptr<Guest>& guest);
  void judge(const std::shared_ptr<Guest>& guest, const Frame& frame);
  void refuse(const std::shared_ptr<Guest>& guest, const std::string& why, bool tell);

  boost::asio::io_context& io_;
  boost::asio::ssl::context& tls_;
  const TransportOptions& options_;
  Admit admit_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer pause_;
  int port_ = 0;
  /// Shared with the guests, which may outlive us in handlers that never ran.
  std::shared_ptr<int> guests_ = std::make_shared<int>(0);
  std::atomic<int> refused_ = 0;
};

}  // namespace nebula
