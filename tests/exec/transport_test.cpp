#include "exec/transport.hpp"

#include <algorithm>
#include <numeric>
#include <thread>

#include "exec/frame.hpp"
#include "tests/catch.hpp"
#include "tests/exec/wire_fixture.hpp"

namespace nebula {
namespace {

using test::activation;
using test::Chain;
using test::contains;
using test::gradient;
using test::random_bytes;
using test::run_error;

TEST_CASE("messages of all sizes cross both ways, in any order of asking") {
  for (const int connections : {1, 3}) {
    Chain chain(2, connections);
    std::mt19937_64 random(1);
    std::vector<std::vector<std::byte>> payloads;
    for (const std::size_t size : {0, 1, 16320, 16321, 100'000, 1 << 20, 3'000'001}) {
      payloads.push_back(random_bytes(random, size));
    }
    const int count = int(payloads.size());
    for (int i = 0; i < count; ++i) {
      chain.at(0).send(7, activation(i), payloads[std::size_t(i)]);
      chain.at(1).send(7, gradient(i), payloads[std::size_t(i)]);
    }
    std::vector<int> order(payloads.size());
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    for (const int i : order) {
      const auto& payload = payloads[std::size_t(i)];
      const Received there = chain.at(1).receive(7, activation(i));
      CHECK(there.payload == payload);
      CHECK(there.arrived_ns > there.sent_ns - 1'000'000'000);
      CHECK(chain.at(0).receive(7, gradient(i)).payload == payload);
      const auto size = std::int64_t(payload.size());
      std::int64_t wire = frame_wire_bytes(size);
      if (connections == 3 && size >= 3 * 64 * 1024) {
        wire = 0;
        for (int part = 0; part < 3; ++part) {
          wire += frame_wire_bytes(part_begin(size, part + 1, 3) - part_begin(size, part, 3));
        }
        CHECK(there.wire_bytes == wire);
      }
      if (connections == 1) CHECK(there.wire_bytes == wire);
    }
    const PeerStats stats = chain.at(0).stats().at(0);
    CHECK(stats.stage == 1);
    CHECK(stats.messages_sent == count);
    CHECK(stats.messages_received == count);
    CHECK(stats.wire_bytes_sent == stats.wire_bytes_received);
    CHECK(stats.duplicates == 0);
    CHECK(stats.rtt_s > 0);
    chain.for_all([](Transport& t) { t.close(); });
  }
}

TEST_CASE("three stages, several connections, many steps") {
  Chain chain(3, 2);
  const auto run = [](Transport& t) {
    const int stage = t.stats().size() == 2                         ? 1
                      : t.stats().at(0).stage == 1 && t.port() == 0 ? 0
                                                                    : 2;
    const auto payload = [](int step, int i) {
      return std::vector<std::byte>(std::size_t(1000 * (i + 1)), std::byte(step + i));
    };
    for (int step = 0; step < 20; ++step) {
      for (int i = 0; i < 4; ++i) {
        if (stage > 0 &&
            t.receive(step, activation(i, stage - 1, stage)).payload != payload(step, i)) {
          throw RunError("another activation");
        }
        if (stage < 2) t.send(step, activation(i, stage, stage + 1), payload(step, i));
      }
      for (int i = 0; i < 4; ++i) {
        if (stage < 2 &&
            t.receive(step, gradient(i, stage + 1, stage)).payload != payload(step, i)) {
          throw RunError("another gradient");
        }
        if (stage > 0) t.send(step, gradient(i, stage, stage - 1), payload(step, i));
      }
    }
    t.close();
  };
  CHECK_NOTHROW(chain.for_all(run));
}

TEST_CASE("what was sent before close arrives, what was not never will") {
  Chain chain(2, 2);
  std::mt19937_64 random(1);
  const auto payload = random_bytes(random, 8'000'000);
  auto closing = std::async(std::launch::async, [&] {
    chain.at(0).send(1, activation(0), payload);
    chain.at(0).close();
  });
  CHECK(chain.at(1).receive(1, activation(0)).payload == payload);
  CHECK(run_error([&] { chain.at(1).receive(1, activation(1)); }) ==
        "stage 0 (north) has ended its run; activation 1 from stage 0 to stage 1 of step 1 will "
        "never come");
  chain.at(1).close();
  closing.get();
}

TEST_CASE("a peer that does not end in time is left, with a word in the log") {
  Chain chain(2, 1, [](TransportOptions& options) { options.close_timeout_s = 0.2; });
  chain.at(0).close();
  CHECK(contains(chain.logs[0].text(), "not all peers ended"));
  CHECK(contains(run_error([&] { chain.at(1).receive(0, activation(0)); }), "has ended its run"));
  CHECK_NOTHROW(chain.at(1).close());
}

TEST_CASE("a message that does not come is named when time is up") {
  Chain chain(2, 1, [](TransportOptions& options) { options.message_timeout_s = 0.1; });
  CHECK(run_error([&] { chain.at(1).receive(4, activation(3)); }) ==
        "waited 100 ms for activation 3 from stage 0 (north) in step 4: it is connected, but sent "
        "nothing");
}

TEST_CASE("an absurd queue is an error at the sender") {
  Chain chain(2, 1, [&](TransportOptions& options) {
    options.send_buffer_bytes = 1000;
    if (options.own.stage == 0) {
      options.peers[0].emulation = LinkEmulation{1e4, 0, options.key_folder + "/line"};
    }
  });
  chain.at(0).send(0, activation(0), std::vector<std::byte>(900));
  CHECK(
      contains(run_error([&] { chain.at(0).send(0, activation(1), std::vector<std::byte>(900)); }),
               "wait to be sent to stage 1 (mid)"));
}

TEST_CASE("a flood that nobody asked for is an error at both ends") {
  Chain chain(2, 1, [](TransportOptions& options) { options.receive_buffer_bytes = 100'000; });
  for (int i = 0; i < 3; ++i) {
    chain.at(0).send(0, activation(i), std::vector<std::byte>(40'000));
  }
  CHECK(contains(run_error([&] { chain.at(1).receive(1, activation(0)); }),
                 "stage 0 (north) sent more than 97.7 KiB of messages that nobody has asked for"));
  const std::string told = run_error([&] { chain.at(0).receive(1, gradient(0)); });
  CHECK(contains(told, "stage 1 (mid) failed: "));
  CHECK(contains(told, "nobody has asked for"));
}

TEST_CASE("options that can't be are named") {
  test::TemporaryFolder folder;
  test::Log log;
  make_keys(folder / "keys", test::clouds());
  auto options = test::chain_options(0, 2, folder / "keys", log, 0);
  CHECK_THROWS_AS(Transport(options), InputError);
  options = test::chain_options(0, 2, folder / "keys", log);
  options.peers.push_back(options.peers[0]);
  CHECK_THROWS_AS(Transport(options), InputError);
  options = test::chain_options(0, 2, folder / "none", log);
  CHECK_THROWS_AS(Transport(options), InputError);

  auto listening = test::chain_options(1, 2, folder / "keys", log);
  const Transport first(listening);
  listening.own.port = first.port();
  CHECK(contains(run_error([&] { const Transport second(listening); }), "cannot listen on port"));
}

TEST_CASE("a stage alone needs neither keys nor peers") {
  TransportOptions options;
  Transport transport(options);
  CHECK_NOTHROW(transport.connect());
  CHECK(run_error([&] { transport.send(0, activation(0), {}); }) ==
        "stage 1 is no peer of stage 0 ()");
  CHECK_NOTHROW(transport.close());
}

}  // namespace
}  // namespace nebula
