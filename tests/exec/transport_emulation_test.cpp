#include <algorithm>
#include <cmath>

#include "exec/frame.hpp"
#include "exec/transport.hpp"
#include "tests/catch.hpp"
#include "tests/exec/wire_fixture.hpp"

namespace nebula {
namespace {

using test::activation;
using test::Chain;

constexpr double rate = 50e6 / 8;
constexpr double latency_s = 0.020;
/// For the two processes' clocks, which are read apart.
constexpr std::int64_t early_ns = 100'000;
/// What a busy machine may add.
constexpr std::int64_t late_ns = 500'000'000;

Chain emulated(int connections) {
  return Chain(2, connections, [](TransportOptions& options) {
    options.peers[0].emulation = LinkEmulation{
        rate, latency_s, options.key_folder + "/line" + std::to_string(options.own.stage)};
  });
}

TEST_CASE("messages arrive as on a first-come line, never early") {
  for (const int connections : {1, 2}) {
    Chain chain = emulated(connections);
    std::mt19937_64 random(1);
    constexpr int messages = 20;
    std::vector<std::int64_t> sent;
    for (int i = 0; i < messages; ++i) {
      std::vector<std::byte> payload(random() % 200'000);
      sent.push_back(chain.at(0).now_ns());
      chain.at(0).send(0, activation(i), std::move(payload));
    }
    std::int64_t free = 0;
    for (int i = 0; i < messages; ++i) {
      const Received received = chain.at(1).receive(0, activation(i));
      CAPTURE(connections, i, received.payload.size());
      free = std::max(free, sent[std::size_t(i)]) +
             std::llround(double(received.wire_bytes) / rate * 1e9);
      const std::int64_t expected = free + std::llround(latency_s * 1e9);
      CHECK(received.arrived_ns >= expected - early_ns);
      CHECK(received.arrived_ns <= expected + late_ns);
      CHECK(std::llabs(received.sent_ns - sent[std::size_t(i)]) < late_ns);
    }
    const PeerStats stats = chain.at(0).stats().at(0);
    CHECK(stats.rtt_s >= 2 * latency_s);
    CHECK(stats.rtt_s < 2 * latency_s + 0.25);
    CHECK(std::fabs(stats.clock_offset_s) < 0.25);
    chain.for_all([](Transport& t) { t.close(); });
  }
}

TEST_CASE("an abort does not wait for the emulated line") {
  Chain chain(2, 1, [](TransportOptions& options) {
    options.peers[0].emulation =
        LinkEmulation{1e5, 0, options.key_folder + "/line" + std::to_string(options.own.stage)};
  });
  // 100 s of line.
  for (int i = 0; i < 10; ++i)
    chain.at(0).send(0, activation(i), std::vector<std::byte>(1'000'000));
  chain.at(0).abort("the disk is full");
  CHECK(test::run_error([&] { chain.at(1).receive(0, activation(9)); }) ==
        "stage 0 (north) failed: the disk is full");
}

}  // namespace
}  // namespace nebula
