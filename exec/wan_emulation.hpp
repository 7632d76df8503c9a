#pragma once

#include <cstdint>
#include <string>

namespace nebula {

/// One direction of a line between two clouds, emulated in the sender.
struct LinkEmulation {
  double rate_bytes_per_s = 0;
  /// One way.
  double latency_s = 0;
  /// A small file that all processes which send over this line name alike; made when missing.
  std::string state_file;
  bool operator==(const LinkEmulation&) const = default;
};

/// A line that carries one byte after the other, in the order in which senders claim it: what is
/// ready at t occupies it from max(t, end of what was claimed before) for bytes / rate, and each
/// byte arrives a latency after it has left.
///
/// All processes on a host that open the same state file share the line. Times are ns of
/// std::chrono::steady_clock, which all processes of a host have in common.
class EmulatedLink {
 public:
  /// Throws InputError for a rate that isn't positive or a negative latency, RunError when the
  /// state file can't be opened.
  explicit EmulatedLink(const LinkEmulation& settings);
  ~EmulatedLink();
  EmulatedLink(const EmulatedLink&) = delete;
  EmulatedLink& operator=(const EmulatedLink&) = delete;

  /// Claims the line for `bytes` that are ready at `ready_ns`; returns when their first one leaves.
  std::int64_t claim(std::int64_t ready_ns, std::int64_t bytes);

  /// When byte number `bytes` of what leaves from `start_ns` on has arrived.
  std::int64_t arrival_ns(std::int64_t start_ns, std::int64_t bytes) const;

 private:
  std::int64_t occupied_ns(std::int64_t bytes) const;

  LinkEmulation settings_;
  /// Mapped from the state file: when the line is free again.
  std::int64_t* free_ns_ = nullptr;
};

}  // namespace nebula
