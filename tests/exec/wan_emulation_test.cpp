#include "exec/wan_emulation.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <random>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#include "exec/clocks.hpp"
#include "tests/catch.hpp"
#include "tests/exec/wire_fixture.hpp"

namespace nebula {
namespace {

using test::TemporaryFolder;

TEST_CASE("claims follow the recurrence of a first-come line") {
  const TemporaryFolder folder;
  std::mt19937_64 random(1);
  for (int round = 0; round < 50; ++round) {
    const double rate = 1e5 * double(1 + random() % 1000);
    const double latency_s = double(random() % 1000) * 1e-4;
    EmulatedLink link({rate, latency_s, folder / std::to_string(round)});
    std::int64_t ready = steady_ns();
    std::int64_t free = 0;
    for (int i = 0; i < 200; ++i) {
      ready += std::int64_t(random() % 20'000'000);
      const auto bytes = std::int64_t(random() % 1'000'000);
      const std::int64_t start = link.claim(ready, bytes);
      REQUIRE(start == std::max(ready, free));
      free = start + std::llround(double(bytes) / rate * 1e9);
      REQUIRE(link.arrival_ns(start, bytes) == free + std::llround(latency_s * 1e9));
    }
  }
}

TEST_CASE("processes share a line: their claims never overlap") {
  const TemporaryFolder folder;
  const LinkEmulation settings{1e9, 0.01, folder / "line"};
  const std::int64_t begin = steady_ns();
  constexpr int claims = 2000;
  constexpr std::int64_t bytes = 10'000;
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i) {
    children.push_back(::fork());
    if (children.back() == 0) {
      EmulatedLink link(settings);
      for (int n = 0; n < claims; ++n) link.claim(begin, bytes);
      ::_exit(0);
    }
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  EmulatedLink link(settings);
  CHECK(link.claim(begin, 1) == begin + 3 * claims * bytes);
}

TEST_CASE("a state file from before the host's start does not block the line") {
  const TemporaryFolder folder;
  const std::int64_t now = steady_ns();
  const std::int64_t far = now + std::int64_t{3600} * 1'000'000'000;
  std::ofstream(folder / "line", std::ios::binary)
      .write(reinterpret_cast<const char*>(&far), sizeof far);
  EmulatedLink link({1e6, 0, folder / "line"});
  CHECK(link.claim(steady_ns(), 1) < far);
}

TEST_CASE("impossible lines are refused") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(EmulatedLink({0, 0, folder / "line"}), InputError);
  CHECK_THROWS_AS(EmulatedLink({-1, 0, folder / "line"}), InputError);
  CHECK_THROWS_AS(EmulatedLink({std::nan(""), 0, folder / "line"}), InputError);
  CHECK_THROWS_AS(EmulatedLink({1e6, -0.1, folder / "line"}), InputError);
  CHECK_THROWS_AS(EmulatedLink({1e6, 0, folder / "no/such/folder"}), RunError);
}

}  // namespace
}  // namespace nebula
