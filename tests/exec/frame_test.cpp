#include "exec/frame.hpp"

#include <limits>
#include <random>

#include "core/step_costs.hpp"
#include "exec/control.hpp"
#include "exec/little_endian.hpp"
#include "tests/catch.hpp"
#include "tests/exec/wire_fixture.hpp"

namespace nebula {
namespace {

using test::contains;
using test::random_bytes;

Frame random_frame(std::mt19937_64& random) {
  const auto below = [&](std::int64_t n) { return int(random() % std::uint64_t(n)); };
  Frame frame;
  FrameHeader& h = frame.header;
  h.run = random();
  h.sent_ns = std::int64_t(random());
  h.message.from = below(65536);
  h.message.to = (h.message.from + 1 + below(65535)) % 65536;
  if (below(2) == 0) {
    h.kind = FrameKind(below(int(FrameKind::goodbye) + 1));
    if (h.kind == FrameKind::data) h.kind = FrameKind::ping;
    h.length = h.total = below(300);
  } else {
    h.step = below(std::int64_t{1} << 31);
    h.message.kind = MessageKind(below(5));
    h.message.micro_batch = below(std::int64_t{1} << 31);
    h.message.chunk = below(65536);
    h.parts = 1 + below(max_frame_parts);
    h.part = below(h.parts);
    h.total = below(2000);
    h.length = part_begin(h.total, h.part + 1, h.parts) - part_begin(h.total, h.part, h.parts);
  }
  frame.payload = random_bytes(random, std::size_t(h.length));
  return frame;
}

void mutate(std::mt19937_64& random, std::vector<std::byte>& bytes) {
  const auto any = [&] { return std::size_t(random() % bytes.size()); };
  switch (random() % 6) {
    case 0:
      bytes[any()] ^= std::byte(1 << random() % 8);
      break;
    case 1:  // in the header
      bytes[random() % frame_header_bytes] = std::byte(random() & 0xff);
      break;
    case 2:
      bytes.resize(random() % bytes.size());
      break;
    case 3:
      bytes.push_back(std::byte(random() & 0xff));
      break;
    case 4:
      std::swap(bytes[any()], bytes[any()]);
      break;
    default:  // an extreme value in a field
      put_le(bytes, random() % (frame_header_bytes / 4) * 4,
             random() % 2 ? std::uint32_t(-1) : std::uint32_t{1} << random() % 32);
  }
}

TEST_CASE("frames come back as they were") {
  std::mt19937_64 random(1);
  for (int i = 0; i < 2000; ++i) {
    const Frame frame = random_frame(random);
    Frame back;
    REQUIRE(parse_frame(encode_frame(frame), back) == "");
    REQUIRE(back == frame);
  }
}

TEST_CASE("the header's layout is what the README says") {
  FrameHeader header;
  header.run = 0x1122334455667788;
  header.step = 0x01020304;
  header.message = {MessageKind::gradient, 2, 1, 0x0a0b0c0d, 3};
  header.part = 4;
  header.parts = 7;
  header.total = 700;
  header.length = 100;
  header.sent_ns = 0x0102030405060708;
  const HeaderBytes bytes = encode_header(header, std::vector<std::byte>(100));
  const std::vector<int> expected{'N',  'B',  'L',  'A',  1,    0, 3, 1, 0x88, 0x77, 0x66, 0x55,
                                  0x44, 0x33, 0x22, 0x11, 4,    3, 2, 1, 2,    0,    1,    0,
                                  0x0d, 0x0c, 0x0b, 0x0a, 3,    0, 4, 0, 7,    0,    0,    0,
                                  100,  0,    0,    0,    0xbc, 2, 0, 0, 0,    0,    0,    0,
                                  8,    7,    6,    5,    4,    3, 2, 1};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CAPTURE(i);
    CHECK(std::to_integer<int>(bytes[i]) == expected[i]);
  }
}

TEST_CASE("a mutated frame is an error or the same frame") {
  std::mt19937_64 random(2);
  int equal = 0;
  int errors = 0;
  for (int i = 0; i < 100'000; ++i) {
    const Frame frame = random_frame(random);
    const std::vector<std::byte> bytes = encode_frame(frame);
    std::vector<std::byte> changed = bytes;
    for (auto n = 1 + random() % 3; n > 0 && !changed.empty(); --n) {
      if (changed.size() < frame_header_bytes) break;
      mutate(random, changed);
    }
    Frame back;
    if (parse_frame(changed, back).empty()) {
      ++equal;
      REQUIRE(changed == bytes);
      REQUIRE(back == frame);
    } else {
      ++errors;
      REQUIRE(back == Frame{});
    }
  }
  CHECK(equal > 100);
  CHECK(errors > 50'000);
}

TEST_CASE("every header that parses has one encoding and keeps the limits") {
  std::mt19937_64 random(3);
  int parsed = 0;
  for (int i = 0; i < 100'000; ++i) {
    Frame frame = random_frame(random);
    HeaderBytes bytes = encode_header(frame.header, frame.payload);
    std::vector<std::byte> changed(bytes.begin(), bytes.end());
    mutate(random, changed);
    if (changed.size() != bytes.size()) continue;
    std::copy(changed.begin(), changed.end(), bytes.begin());
    FrameHeader header;
    if (!parse_header(bytes, header).empty()) continue;
    ++parsed;
    const HeaderBytes again = encode_header(header, frame.payload);
    REQUIRE(std::equal(bytes.begin(), bytes.begin() + 56, again.begin()));
    REQUIRE(header.length >= 0);
    REQUIRE(header.length <= max_frame_payload_bytes);
    REQUIRE(header.part < header.parts);
  }
  CHECK(parsed > 1000);
}

TEST_CASE("garbage is an error") {
  std::mt19937_64 random(4);
  for (int i = 0; i < 10'000; ++i) {
    Frame frame;
    REQUIRE(parse_frame(random_bytes(random, random() % 200), frame) != "");
  }
}

TEST_CASE("another version is named") {
  std::vector<std::byte> bytes = encode_frame(control_frame(FrameKind::goodbye, 1, 0, 1));
  put_le(bytes, 4, std::uint16_t{9});
  Frame frame;
  CHECK(parse_frame(bytes, frame) == "wire version 9, here 1");
}

TEST_CASE("parts cover a message without gaps") {
  std::mt19937_64 random(5);
  for (int i = 0; i < 10'000; ++i) {
    const auto total = std::int64_t(random() >> random() % 64 & 0x3fff'ffff'ffff);
    const int parts = 1 + int(random() % max_frame_parts);
    REQUIRE(part_begin(total, 0, parts) == 0);
    REQUIRE(part_begin(total, parts, parts) == total);
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    std::int64_t most = 0;
    for (int part = 0; part < parts; ++part) {
      const auto length = part_begin(total, part + 1, parts) - part_begin(total, part, parts);
      least = std::min(least, length);
      most = std::max(most, length);
    }
    REQUIRE(least >= 0);
    REQUIRE(most - least <= 1);
  }
}

TEST_CASE("core counts the bytes on the wire as the wire does") {
  std::mt19937_64 random(6);
  for (const std::int64_t n : {0, 1, 16320, 16321, 32704, 32705, 1 << 20}) {
    CHECK(framed_bytes(n) == frame_wire_bytes(n));
  }
  for (int i = 0; i < 1000; ++i) {
    const auto n = std::int64_t(random() % 100'000'000);
    REQUIRE(framed_bytes(n) == frame_wire_bytes(n));
  }
}

TEST_CASE("hello and ping come back as they were, or are errors") {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    Hello hello;
    hello.data_hash = random();
    hello.process = random();
    hello.start_step = int(random() % 1'000'000);
    hello.connections = 1 + int(random() % 256);
    hello.connection = int(random() % std::uint64_t(hello.connections));
    hello.cloud = std::string(random() % 20, 'c');
    std::vector<std::byte> bytes = encode_hello(hello);
    Hello back;
    REQUIRE(parse_hello(bytes, back) == "");
    REQUIRE(back == hello);
    bytes[random() % bytes.size()] = std::byte(random() & 0xff);
    if (random() % 4 == 0) bytes.resize(random() % bytes.size());
    if (parse_hello(bytes, back).empty()) REQUIRE(encode_hello(back) == bytes);

    const Ping ping{std::int64_t(random()), std::int64_t(random()), std::int64_t(random())};
    Ping ping_back;
    REQUIRE(parse_ping(encode_ping(ping), ping_back) == "");
    REQUIRE(ping_back == ping);
  }
  Ping ping;
  CHECK(parse_ping(std::vector<std::byte>(23), ping) != "");
}

}  // namespace
}  // namespace nebula
