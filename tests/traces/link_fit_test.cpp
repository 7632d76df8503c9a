#include "traces/link_fit.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/catch.hpp"

using namespace nebula;

namespace {

struct Line {
  double rate = 12.5e6;
  double latency = 15e-3;
  /// Mean seconds that the receiver notices a message late.
  double late_s = 0;
};

/// Messages of the given bytes, each ready `pause(random)` after the one before; one at a time on
/// the line.
std::vector<Event> cross(const Line& line, const std::vector<double>& bytes, double mean_pause_s,
                         std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> unit(1);
  std::vector<Event> events;
  double ready_s = 0;
  double free_s = 0;
  for (const double size : bytes) {
    ready_s += mean_pause_s * unit(random);
    free_s = std::max(free_s, ready_s) + size / line.rate;
    Event event;
    event.kind = EventKind::transfer;
    event.start_s = ready_s;
    event.end_s = free_s + line.latency + line.late_s * unit(random);
    event.bytes = size;
    events.push_back(event);
  }
  return events;
}

/// Activations with a short message now and then.
std::vector<double> mixed(int count) {
  std::vector<double> bytes;
  for (int i = 0; i < count; ++i) bytes.push_back(i % 9 == 8 ? 118 : 262'000);
  return bytes;
}

}  // namespace

TEST_CASE("rate and latency of a line without jitter are found exactly") {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> exponent(0, 1);
  for (int round = 0; round < 100; ++round) {
    Line line;
    line.rate = 1e6 * std::pow(1000, exponent(random));
    line.latency = 1e-4 * std::pow(1000, exponent(random));
    // Queues now and then, up to nearly always for the large ones.
    const double pause_s = 262'000 / line.rate * (0.9 + 4 * exponent(random)) + 2 * line.latency;
    auto transfers = cross(line, mixed(400), pause_s, std::uint64_t(round));
    std::shuffle(transfers.begin(), transfers.end(), random);
    const auto fit = fit_link(transfers, 1);
    REQUIRE(fit);
    CHECK(fit->latency_told);
    CHECK(fit->rate_bytes_per_s == Approx(line.rate).epsilon(1e-6));
    CHECK(fit->latency_s == Approx(line.latency).epsilon(1e-6));
    CHECK(fit->predicted_s == Approx(fit->measured_s).epsilon(1e-6));
  }
}

TEST_CASE("lateness of the receiver and single stalls hardly move the fit") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    // A large message takes 21 ms; the receiver is late by 0.3 ms on average.
    const Line line{12.5e6, 15e-3, 0.3e-3};
    auto transfers = cross(line, mixed(400), 40e-3, seed);
    std::mt19937_64 random(seed);
    for (Event& event : transfers)
      if (random() % 25 == 0) event.end_s += 0.2;
    const auto fit = fit_link(transfers, 1);
    REQUIRE(fit);
    // Late by 0.3 ms of 21 ms is 1.4 % of the rate; the latency is the floor of the small ones.
    CHECK(fit->rate_bytes_per_s == Approx(line.rate).epsilon(0.03));
    CHECK(fit->latency_s == Approx(line.latency).margin(0.3e-3));
  }
}

TEST_CASE("without short messages on a free line the latency is taken as given") {
  const Line line{5e6, 20e-3, 0};
  const std::vector<double> large(50, 100'000);
  // Queued right behind a large one, a short message tells nothing.
  std::vector<double> behind;
  for (const double bytes : large) behind.insert(behind.end(), {bytes, 118});
  auto queued = cross(line, behind, 0.1, 1);
  for (std::size_t i = 1; i < queued.size(); i += 2) {
    queued[i].start_s = queued[i - 1].start_s + 1e-6;
    queued[i].end_s = queued[i - 1].end_s + 118 / line.rate;
  }
  for (const auto& transfers : {cross(line, large, 0.1, 1), queued}) {
    const auto fit = fit_link(transfers, 20e-3);
    REQUIRE(fit);
    CHECK_FALSE(fit->latency_told);
    CHECK(fit->latency_s == 20e-3);
    CHECK(fit->rate_bytes_per_s == Approx(5e6).epsilon(1e-3));
    // An assumption that the messages disprove is given up; their seconds stay right.
    const auto disproved = fit_link(transfers, 1);
    REQUIRE(disproved);
    CHECK(disproved->latency_s < 40e-3);
    CHECK(disproved->predicted_s == Approx(disproved->measured_s).epsilon(0.05));
  }
}

TEST_CASE("no transfers, no fit") {
  CHECK_FALSE(fit_link({}, 1e-3));
  Event empty;
  empty.kind = EventKind::transfer;
  CHECK_FALSE(fit_link({empty}, 1e-3));
}
