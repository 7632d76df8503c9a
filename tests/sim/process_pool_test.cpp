#include "sim/process_pool.hpp"

#include <csignal>
#include <iostream>

#include <unistd.h>

#include "core/error.hpp"
#include "tests/catch.hpp"

using namespace nebula;

namespace {

std::string message_of(std::size_t count, const PoolOptions& options,
                       const std::function<std::string(std::size_t)>& task) {
  try {
    run_in_children(count, options, task);
  } catch (const RunError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("results come back in order, whatever their size and the number of workers") {
  const auto task = [](std::size_t i) { return std::string(i * i * 10, char('a' + i % 26)); };
  for (const int workers : {1, 2, 5}) {
    for (const std::size_t per_process : {1U, 7U, 1000U}) {
      const auto results = run_in_children(60, {workers, per_process}, task);
      REQUIRE(results.size() == 60);
      for (std::size_t i = 0; i < 60; ++i) CHECK(results[i] == task(i));
    }
  }
  CHECK(run_in_children(0, {}, task).empty());
}

TEST_CASE("tasks run in other processes, each in so many tasks' company") {
  int here = 0;
  const auto task = [&](std::size_t) {
    ++here;
    return std::to_string(getpid()) + " " + std::to_string(here);
  };
  const auto results = run_in_children(6, {1, 3}, task);
  CHECK(here == 0);
  CHECK(results[0].substr(results[0].find(' ')) == " 1");
  CHECK(results[2].substr(results[2].find(' ')) == " 3");
  CHECK(results[3].substr(results[3].find(' ')) == " 1");
  CHECK(results[2].substr(0, results[2].find(' ')) != results[3].substr(0, results[3].find(' ')));
}

TEST_CASE("a failure is told, of several the first, after the others are through") {
  const auto task = [](std::size_t i) -> std::string {
    if (i == 3 || i == 7) throw std::runtime_error("task " + std::to_string(i) + " is broken");
    return "";
  };
  CHECK(message_of(9, {1, 4}, task) == "task 3 is broken");
  CHECK(message_of(9, {4, 4}, task) == "task 3 is broken");
}

TEST_CASE("a child that dies is an error, not silence") {
  const auto killed = [](std::size_t i) -> std::string {
    if (i == 1) raise(SIGKILL);
    return "";
  };
  CHECK(message_of(3, {2, 2}, killed).find("signal 9") != std::string::npos);
  const auto leaves = [](std::size_t) -> std::string { _exit(0); };
  CHECK(message_of(1, {1, 1}, leaves).find("ended early") != std::string::npos);
}
