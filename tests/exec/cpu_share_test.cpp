#include "exec/cpu_share.hpp"

#include <thread>
#include <vector>

#include <sched.h>

#include "tests/catch.hpp"

using namespace nebula;

namespace {

std::vector<int> cpus() {
  cpu_set_t set;
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  std::vector<int> result;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) result.push_back(cpu);
  }
  return result;
}

// In a thread of its own: a binding lasts as long as its thread.
std::vector<int> cpus_with(const CpuShare& share) {
  std::vector<int> result;
  std::thread([&] {
    bind_to(share);
    result = cpus();
  }).join();
  return result;
}

}  // namespace

TEST_CASE("a share is its own CPUs and those that nobody claims") {
  const std::vector<int> all = cpus();
  const int n = int(all.size());
  CHECK(cpus_with({0, 1, n}) == std::vector<int>{all.front()});
  CHECK(cpus_with({n - 1, 1, n}) == std::vector<int>{all.back()});
  CHECK(cpus_with({0, 1, 1}) == all);
  // The second of two processes with one CPU each.
  if (n > 2) CHECK(cpus_with({1, 1, 2}) == std::vector<int>(all.begin() + 1, all.end()));
}

TEST_CASE("without enough CPUs, or without a claim, nothing is bound") {
  const std::vector<int> all = cpus();
  const int n = int(all.size());
  CHECK(cpus_with({0, 1, n + 1}) == all);
  CHECK(cpus_with({0, 0, 0}) == all);
  CHECK(cpus_with({}) == all);
}
