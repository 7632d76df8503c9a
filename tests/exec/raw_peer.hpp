#pragma once

#include <span>
#include <string>

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

#include "exec/control.hpp"
#include "exec/tls.hpp"

namespace nebula::test {

/// A blocking TLS client that may say anything.
class RawPeer {
 public:
  RawPeer(int port, boost::asio::ssl::context context) : context_(std::move(context)) {
    using boost::asio::ip::tcp;
    stream_.next_layer().connect(
        {boost::asio::ip::address_v4::loopback(), static_cast<unsigned short>(port)});
  }

  /// False when TLS fails.
  bool shake_hands() {
    boost::system::error_code error;
    stream_.handshake(boost::asio::ssl::stream_base::client, error);
    return !error;
  }

  void write(std::span<const std::byte> bytes) {
    boost::system::error_code ignored;
    boost::asio::write(stream_, boost::asio::buffer(bytes.data(), bytes.size()), ignored);
  }
  void write(const Frame& frame) { write(encode_frame(frame)); }

  /// The next frame; one of kind goodbye when there is none.
  Frame read() {
    Frame frame;
    HeaderBytes header{};
    boost::system::error_code error;
    boost::asio::read(stream_, boost::asio::buffer(header), error);
    frame.header.kind = FrameKind::goodbye;
    if (error || !parse_header(header, frame.header).empty()) return frame;
    frame.payload.resize(std::size_t(frame.header.length));
    boost::asio::read(stream_, boost::asio::buffer(frame.payload), error);
    return frame;
  }

  /// Past pings.
  Frame read(FrameKind kind) {
    for (;;) {
      Frame frame = read();
      if (frame.header.kind == kind || frame.header.kind == FrameKind::goodbye) return frame;
    }
  }

  TlsStream& stream() { return stream_; }

 private:
  boost::asio::io_context io_;
  boost::asio::ssl::context context_;
  TlsStream stream_{io_, context_};
};

/// The hello that stage 0 of chain_options() says.
inline Frame hello_frame(const std::string& cloud = "north", std::uint64_t plan = 0x1234) {
  Hello hello;
  hello.data_hash = 0x5678;
  hello.process = 77;
  hello.cloud = cloud;
  return control_frame(FrameKind::hello, plan, 0, 1, encode_hello(hello));
}

}  // namespace nebula::test
