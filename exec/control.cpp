#include "exec/control.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "exec/little_endian.hpp"

namespace nebula {
namespace {

constexpr std::size_t hello_fixed_bytes = 26;
constexpr std::size_t ping_bytes = 24;
constexpr std::size_t max_cloud_bytes = 255;

}  // namespace

std::vector<std::byte> encode_hello(const Hello& hello) {
  const std::string_view cloud = std::string_view(hello.cloud).substr(0, max_cloud_bytes);
  std::vector<std::byte> bytes(hello_fixed_bytes + cloud.size());
  put_le(bytes, 0, hello.data_hash);
  put_le(bytes, 8, hello.process);
  put_le(bytes, 16, std::uint32_t(hello.start_step));
  put_le(bytes, 20, std::uint16_t(hello.connection));
  put_le(bytes, 22, std::uint16_t(hello.connections));
  put_le(bytes, 24, std::uint16_t(cloud.size()));
  std::ranges::copy(std::as_bytes(std::span(cloud)), bytes.begin() + hello_fixed_bytes);
  return bytes;
}

std::string parse_hello(std::span<const std::byte> payload, Hello& hello) {
  if (payload.size() < hello_fixed_bytes) return "a hello that is too short";
  const auto step = get_le<std::uint32_t>(payload, 16);
  const std::size_t length = get_le<std::uint16_t>(payload, 24);
  if (length > max_cloud_bytes || payload.size() != hello_fixed_bytes + length) {
    return "a hello of the wrong length";
  }
  if (step > std::uint32_t(std::numeric_limits<std::int32_t>::max())) {
    return "a hello with an impossible step";
  }
  Hello h;
  h.data_hash = get_le<std::uint64_t>(payload, 0);
  h.process = get_le<std::uint64_t>(payload, 8);
  h.start_step = int(step);
  h.connection = get_le<std::uint16_t>(payload, 20);
  h.connections = get_le<std::uint16_t>(payload, 22);
  h.cloud = printable(payload.subspan(hello_fixed_bytes));
  if (to_bytes(h.cloud) != std::vector(payload.begin() + hello_fixed_bytes, payload.end())) {
    return "a hello whose cloud is not text";
  }
  if (h.connection >= h.connections) return "a hello with an impossible connection";
  hello = std::move(h);
  return {};
}

std::vector<std::byte> encode_ping(const Ping& ping) {
  std::vector<std::byte> bytes(ping_bytes);
  put_le(bytes, 0, ping.sent_ns);
  put_le(bytes, 8, ping.received_ns);
  put_le(bytes, 16, ping.answered_ns);
  return bytes;
}

std::string parse_ping(std::span<const std::byte> payload, Ping& ping) {
  if (payload.size() != ping_bytes) return "a ping of the wrong length";
  ping = {get_le<std::int64_t>(payload, 0), get_le<std::int64_t>(payload, 8),
          get_le<std::int64_t>(payload, 16)};
  return {};
}

Frame control_frame(FrameKind kind, std::uint64_t run, int from, int to,
                    std::vector<std::byte> payload) {
  FrameHeader header;
  header.kind = kind;
  header.run = run;
  header.message.from = from;
  header.message.to = to;
  header.length = header.total = std::int64_t(payload.size());
  return {header, std::move(payload)};
}

}  // namespace nebula
