#include "exec/clocks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/catch.hpp"

namespace nebula {
namespace {

constexpr std::int64_t ms = 1'000'000;
constexpr std::int64_t epoch = 1'700'000'000'000'000'000;

// A ping that leaves at `at`, and the pong's arrival, with a peer whose clock is ahead by `offset`.
std::int64_t exchange(PeerClock& clock, std::int64_t at, std::int64_t offset, std::int64_t there,
                      std::int64_t held, std::int64_t back) {
  const Ping pong{at, at + there + offset, at + there + held + offset};
  clock.add(pong, at + there + held + back);
  return at + there + held + back;
}

TEST_CASE("equal ways give the exact offset") {
  for (const std::int64_t offset : {std::int64_t{0}, 7 * ms, -5'000 * ms, 3'600'000 * ms}) {
    PeerClock clock;
    exchange(clock, epoch, offset, 20 * ms, 3 * ms, 20 * ms);
    CHECK(clock.offset_s() == Approx(double(offset) * 1e-9).margin(2e-9));
    CHECK(clock.rtt_s() == Approx(0.040));
    CHECK(std::abs(clock.to_own(epoch + offset) - epoch) <= 2);
  }
}

TEST_CASE("the offset's error is at most half of what the quickest sample queued") {
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    PeerClock clock;
    const auto offset = std::int64_t(random() % 1'000'000'000) - 500 * ms;
    std::int64_t now = epoch;
    std::int64_t quickest = std::numeric_limits<std::int64_t>::max();
    for (int i = 0; i < 8; ++i) {
      const auto there = std::int64_t(random() % std::uint64_t(50 * ms));
      const auto back = std::int64_t(random() % std::uint64_t(50 * ms));
      quickest = std::min(quickest, there + back);
      now = exchange(clock, now, offset, 15 * ms + there, ms, 15 * ms + back);
    }
    REQUIRE(clock.samples() == 8);
    REQUIRE(clock.rtt_s() == Approx(double(30 * ms + quickest) * 1e-9));
    REQUIRE(std::abs(clock.offset_s() - double(offset) * 1e-9) <= double(quickest) * 0.5e-9 + 1e-8);
  }
}

TEST_CASE("a slower sample only counts once drift would make the old one worse") {
  PeerClock clock;
  exchange(clock, epoch, 0, 10 * ms, 0, 10 * ms);
  // 10 ms slower in one direction: 5 ms of error, which drift reaches after 250 s.
  exchange(clock, epoch + 200'000 * ms, 0, 20 * ms, 0, 10 * ms);
  CHECK(clock.rtt_s() == Approx(0.020));
  exchange(clock, epoch + 300'000 * ms, 0, 20 * ms, 0, 10 * ms);
  CHECK(clock.rtt_s() == Approx(0.030));
}

}  // namespace
}  // namespace nebula
