#include "traces/least_squares.hpp"

#include <random>

#include "tests/catch.hpp"

using namespace nebula;

TEST_CASE("a common factor is found exactly") {
  std::mt19937_64 random(1);
  std::uniform_real_distribution<double> part(0.1, 1);
  for (int round = 0; round < 300; ++round) {
    const std::size_t sums = 1 + random() % 4;
    const std::size_t kinds = 1 + random() % 4;
    const double factor = part(random) * 10;
    std::vector<std::vector<double>> parts(sums, std::vector<double>(kinds));
    std::vector<double> measured(sums, 0.0);
    for (std::size_t s = 0; s < sums; ++s)
      for (double& p : parts[s]) measured[s] += factor * (p = part(random));
    for (const double x : shrunk_factors(parts, measured)) CHECK(x == Approx(factor).epsilon(1e-9));
  }
}

TEST_CASE("unlike factors are found when the sums tell them, and the sums are met anyway") {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<double> part(0.1, 1);
  std::uniform_real_distribution<double> factor(0.5, 2);
  for (int round = 0; round < 300; ++round) {
    const std::size_t sums = 2 + random() % 3;
    const std::size_t kinds = 2 + random() % 3;
    std::vector<double> truth(kinds);
    for (double& t : truth) t = factor(random);
    std::vector<std::vector<double>> parts(sums, std::vector<double>(kinds, 0.0));
    std::vector<double> measured(sums, 0.0);
    for (std::size_t s = 0; s < sums; ++s)
      for (std::size_t k = 0; k < kinds; ++k) {
        // Well told apart: sum s is mostly of kind s.
        parts[s][k] = k == s % kinds ? 1 : 0.2 * part(random);
        measured[s] += truth[k] * parts[s][k];
      }
    const auto found = shrunk_factors(parts, measured);
    REQUIRE(found.size() == kinds);
    for (std::size_t s = 0; s < sums; ++s) {
      double sum = 0;
      for (std::size_t k = 0; k < kinds; ++k) sum += found[k] * parts[s][k];
      CHECK(sum == Approx(measured[s]).epsilon(2e-3));
    }
    if (sums >= kinds)
      for (std::size_t k = 0; k < kinds; ++k) CHECK(found[k] == Approx(truth[k]).epsilon(5e-3));
  }
}

TEST_CASE("what no sum tells stays at the common ratio") {
  // One stage: block and head can't be told apart, an embedding of no seconds not at all.
  const auto found = shrunk_factors({{4, 1, 0}}, {10});
  REQUIRE(found.size() == 3);
  for (const double x : found) CHECK(x == Approx(2));
}

TEST_CASE("no factor falls below a tenth of the common ratio") {
  // Exactly solved by factors of 2 and -1.
  const auto found = shrunk_factors({{1, 0.5}, {1, 1.5}}, {1.5, 0.5});
  REQUIRE(found.size() == 2);
  const double ratio = 2.0 / 4.0;
  CHECK(found[1] == Approx(0.1 * ratio));
  CHECK(found[0] > ratio);
  CHECK(found[0] < 2);
}

TEST_CASE("nothing is found where nothing was measured") {
  CHECK(shrunk_factors({}, {}).empty());
  CHECK(shrunk_factors({{0, 0}}, {1}).empty());
  CHECK(shrunk_factors({{1, 2}}, {0}).empty());
  CHECK(shrunk_factors({{1, 2}, {1, 2}}, {3, -1}).empty());
}
