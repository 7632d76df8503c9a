#pragma once

#include <chrono>
#include <cstdint>

#include "exec/control.hpp"

namespace nebula {

inline std::int64_t steady_ns() {
  using namespace std::chrono;
  return nanoseconds(steady_clock::now().time_since_epoch()).count();
}

/// Unix time that doesn't jump when the host's clock is set: read once, then carried on by the
/// steady clock.
class WallClock {
 public:
  std::int64_t now_ns() const { return start_ns_ + steady_ns(); }

 private:
  static std::int64_t unix_ns() {
    using namespace std::chrono;
    return nanoseconds(system_clock::now().time_since_epoch()).count();
  }
  std::int64_t start_ns_ = unix_ns() - steady_ns();
};

/// A peer's clock against ours, from pings: of a sample that took rtt, the offset is off by at most
/// rtt / 2, so the quickest sample counts. Clocks drift, so an old one is given up in the end, but
/// slowly: on a busy line all new samples have waited in one direction's queue.
class PeerClock {
 public:
  /// A pong that arrived at `now_ns` of our clock.
  void add(const Ping& pong, std::int64_t now_ns);

  int samples() const { return samples_; }
  double rtt_s() const { return double(rtt_ns_) * 1e-9; }
  double offset_s() const { return double(offset_ns_) * 1e-9; }
  std::int64_t to_own(std::int64_t peer_ns) const { return peer_ns - offset_ns_; }

 private:
  int samples_ = 0;
  std::int64_t rtt_ns_ = 0;
  std::int64_t offset_ns_ = 0;
  std::int64_t taken_ns_ = 0;
};

}  // namespace nebula
