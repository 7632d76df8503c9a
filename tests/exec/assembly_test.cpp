#include "exec/assembly.hpp"

#include <algorithm>
#include <random>

#include "tests/catch.hpp"
#include "tests/exec/wire_fixture.hpp"

namespace nebula {
namespace {

using test::activation;
using test::random_bytes;

struct Part {
  FrameHeader header;
  std::vector<std::byte> bytes;
};

std::vector<Part> cut(int step, const Message& message, const std::vector<std::byte>& payload,
                      int parts) {
  std::vector<Part> all;
  FrameHeader h;
  h.step = step;
  h.message = message;
  h.parts = parts;
  h.total = std::int64_t(payload.size());
  h.sent_ns = 5;
  for (h.part = 0; h.part < parts; ++h.part) {
    const auto begin = part_begin(h.total, h.part, parts);
    const auto end = part_begin(h.total, h.part + 1, parts);
    h.length = end - begin;
    all.push_back({h, {payload.begin() + begin, payload.begin() + end}});
  }
  return all;
}

TEST_CASE("parts of several messages in any order, some twice, make the messages") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    std::map<MessageKey, std::vector<std::byte>> sent;
    std::vector<Part> parts;
    for (int i = 0; i < 4; ++i) {
      const auto payload = random_bytes(random, random() % 100);
      sent[{round, activation(i)}] = payload;
      for (Part& part : cut(round, activation(i), payload, 1 + int(random() % 5))) {
        if (random() % 4 == 0) parts.push_back(part);
        parts.push_back(std::move(part));
      }
    }
    std::shuffle(parts.begin(), parts.end(), random);

    Assembly assembly;
    std::size_t placed = 0;
    std::size_t duplicates = 0;
    std::map<MessageKey, std::vector<std::byte>> complete;
    for (const Part& part : parts) {
      REQUIRE(assembly.check(part.header) == "");
      const bool is_new = assembly.is_new(part.header);
      const Assembly::Place place = assembly.place(part.header);
      REQUIRE(place.first == is_new);
      if (place.duplicate) {
        ++duplicates;
        continue;
      }
      ++placed;
      REQUIRE(place.bytes.size() == part.bytes.size());
      std::copy(part.bytes.begin(), part.bytes.end(), place.bytes.begin());
      Received received;
      if (assembly.finish(part.header, received)) {
        const bool added =
            complete.emplace(MessageKey{part.header.step, part.header.message}, received.payload)
                .second;
        REQUIRE(added);
      }
    }
    REQUIRE(complete == sent);
    REQUIRE(placed + duplicates == parts.size());
  }
}

TEST_CASE("a message's wire bytes are those of its parts") {
  Assembly assembly;
  Received received;
  const std::vector<std::byte> payload(100'000);
  for (const Part& part : cut(0, activation(0), payload, 3)) {
    assembly.place(part.header);
    assembly.finish(part.header, received);
  }
  CHECK(received.payload.size() == payload.size());
  CHECK(received.sent_ns == 5);
  CHECK(received.wire_bytes == 2 * frame_wire_bytes(33'333) + frame_wire_bytes(33'334));
}

TEST_CASE("parts that contradict each other are told") {
  Assembly assembly;
  auto parts = cut(0, activation(0), std::vector<std::byte>(10), 2);
  assembly.place(parts[0].header);
  CHECK(assembly.check(parts[1].header) == "");
  FrameHeader other = parts[1].header;
  other.total = 11;
  CHECK(test::contains(assembly.check(other), "contradict"));
  other = parts[1].header;
  other.parts = 3;
  CHECK(test::contains(assembly.check(other), "contradict"));
  other = parts[1].header;
  other.sent_ns = 6;
  CHECK(test::contains(assembly.check(other), "contradict"));
}

TEST_CASE("only so many complete messages are remembered") {
  Assembly assembly(2);
  Received received;
  for (int i = 0; i < 3; ++i) {
    const auto part = cut(0, activation(i), {}, 1)[0];
    assembly.place(part.header);
    CHECK(assembly.finish(part.header, received));
  }
  CHECK(assembly.is_new(cut(0, activation(0), {}, 1)[0].header));
  CHECK(!assembly.is_new(cut(0, activation(1), {}, 1)[0].header));
  CHECK(!assembly.is_new(cut(0, activation(2), {}, 1)[0].header));
}

}  // namespace
}  // namespace nebula
