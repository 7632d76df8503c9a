// Fuzz target of everything that reads bytes from the network. Built with clang and NEBULA_FUZZ=ON:
//   build/.../tests/nebula_frame_fuzz -max_len=4096 -max_total_time=60
// What parses must have this one encoding.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "exec/control.hpp"
#include "exec/frame.hpp"

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace nebula;
  const auto bytes = std::as_bytes(std::span(data, size));

  Frame frame;
  if (parse_frame(bytes, frame).empty()) {
    require(std::ranges::equal(encode_frame(frame), bytes));
  }
  FrameHeader header;
  if (size >= frame_header_bytes &&
      parse_header(bytes.first<frame_header_bytes>(), header).empty()) {
    require(header.length >= 0 && header.length <= max_frame_payload_bytes);
    require(header.part >= 0 && header.part < header.parts && header.parts <= max_frame_parts);
    const HeaderBytes again = encode_header(header, {});
    // All but the checksum, which covers the payload as well.
    require(std::equal(again.begin(), again.end() - 8, bytes.begin()));
  }
  Hello hello;
  if (parse_hello(bytes, hello).empty()) {
    require(std::ranges::equal(encode_hello(hello), bytes));
  }
  Ping ping;
  if (parse_ping(bytes, ping).empty()) require(std::ranges::equal(encode_ping(ping), bytes));
  return 0;
}
