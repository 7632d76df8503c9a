#pragma once

#include <chrono>
#include <compare>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/schedule.hpp"

namespace nebula {

struct MessageKey {
  int step = 0;
  Message message;
  auto operator<=>(const MessageKey&) const = default;
};

struct Received {
  std::vector<std::byte> payload;
  /// When the sender handed it over and when its last byte was here: unix ns, both on this
  /// process's clock (the peer's is corrected by the measured offset, so off by up to half the
  /// difference of the two directions' latencies).
  std::int64_t sent_ns = 0;
  std::int64_t arrived_ns = 0;
  /// With framing and TLS, over all parts.
  std::int64_t wire_bytes = 0;
};

/// Complete messages between the thread that receives and the one that computes, and the news that
/// no more will come. Safe from any thread.
class Mailbox {
 public:
  explicit Mailbox(std::int64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  /// Room for a message about to arrive; false when the unclaimed ones would exceed the capacity.
  bool reserve(std::int64_t bytes);
  void put(const MessageKey& key, Received received);
  /// Nothing more comes from this stage.
  void end(int stage, const std::string& why);
  /// Nothing more comes at all. The first reason stays.
  void fail(const std::string& why);
  /// Empty while nothing failed.
  std::string failure() const;

  /// The message, or nothing when it isn't there at `until`. Throws RunError once it can't come.
  std::optional<Received> take(const MessageKey& key, std::chrono::steady_clock::time_point until);

 private:
  const std::int64_t capacity_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<MessageKey, Received> messages_;
  std::int64_t reserved_bytes_ = 0;
  std::map<int, std::string> ended_;
  std::string failure_;
};

}  // namespace nebula
