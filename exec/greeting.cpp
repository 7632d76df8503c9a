#include "exec/greeting.hpp"

#include <cstddef>
#include <utility>
#include <vector>

#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>

namespace nebula {
namespace asio = boost::asio;
namespace {

using boost::system::error_code;

struct Reading {
  std::shared_ptr<TlsStream> stream;
  std::function<void(const ReadFrame&)> done;
  HeaderBytes header{};
  ReadFrame result;
};

void read_payload(const std::shared_ptr<Reading>& reading) {
  ReadFrame& result = reading->result;
  result.problem = parse_header(reading->header, result.frame.header);
  if (result.problem.empty() && result.frame.header.kind == FrameKind::data) {
    result.problem = "data before a greeting";
  }
  if (!result.problem.empty()) return reading->done(result);
  result.frame.payload.resize(std::size_t(result.frame.header.length));
  asio::async_read(*reading->stream, asio::buffer(result.frame.payload),
                   [reading](const error_code& error, std::size_t) {
                     ReadFrame& read = reading->result;
                     read.error = error;
                     if (!error && !checksum_matches(reading->header, read.frame.payload)) {
                       read.problem = "a frame whose checksum does not match";
                     }
                     reading->done(read);
                   });
}

}  // namespace

void write_frame(std::shared_ptr<TlsStream> stream, const Frame& frame,
                 std::function<void(const error_code&)> done) {
  auto bytes = std::make_shared<const std::vector<std::byte>>(encode_frame(frame));
  TlsStream& to = *stream;
  asio::async_write(to, asio::buffer(*bytes),
                    [stream = std::move(stream), bytes, done = std::move(done)](
                        const error_code& error, std::size_t) { done(error); });
}

void read_control_frame(std::shared_ptr<TlsStream> stream,
                        std::function<void(const ReadFrame&)> done) {
  auto reading = std::make_shared<Reading>();
  reading->stream = std::move(stream);
  reading->done = std::move(done);
  asio::async_read(*reading->stream, asio::buffer(reading->header),
                   [reading](const error_code& error, std::size_t) {
                     reading->result.error = error;
                     if (error) return reading->done(reading->result);
                     read_payload(reading);
                   });
}

}  // namespace nebula
