#include "exec/clocks.hpp"

#include <algorithm>

namespace nebula {
namespace {

// What two free-running clocks may drift apart, in ns a second.
constexpr std::int64_t drift_ns_per_s = 20'000;

}  // namespace

void PeerClock::add(const Ping& pong, std::int64_t now_ns) {
  const std::int64_t away = now_ns - pong.sent_ns;
  const std::int64_t held = pong.answered_ns - pong.received_ns;
  const std::int64_t rtt = std::max<std::int64_t>(away - held, 0);
  const std::int64_t age_s = (now_ns - taken_ns_) / 1'000'000'000;
  if (samples_++ > 0 && rtt / 2 > rtt_ns_ / 2 + age_s * drift_ns_per_s) return;
  rtt_ns_ = rtt;
  // Halves apart: the sum of two unix times in ns does not fit.
  offset_ns_ = (pong.received_ns - pong.sent_ns) / 2 + (pong.answered_ns - now_ns) / 2;
  taken_ns_ = now_ns;
}

}  // namespace nebula
