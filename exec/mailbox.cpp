#include "exec/mailbox.hpp"

#include <utility>

#include "core/error.hpp"

namespace nebula {

bool Mailbox::reserve(std::int64_t bytes) {
  const std::lock_guard lock(mutex_);
  if (bytes > capacity_bytes_ - reserved_bytes_) return false;
  reserved_bytes_ += bytes;
  return true;
}

void Mailbox::put(const MessageKey& key, Received received) {
  const std::lock_guard lock(mutex_);
  messages_.emplace(key, std::move(received));
  changed_.notify_all();
}

void Mailbox::end(int stage, const std::string& why) {
  const std::lock_guard lock(mutex_);
  ended_.emplace(stage, why);
  changed_.notify_all();
}

void Mailbox::fail(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = why;
  changed_.notify_all();
}

std::string Mailbox::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

std::optional<Received> Mailbox::take(const MessageKey& key,
                                      std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(mutex_);
  for (bool late = false;; late = changed_.wait_until(lock, until) == std::cv_status::timeout) {
    if (!failure_.empty()) throw RunError(failure_);
    if (auto found = messages_.extract(key)) {
      reserved_bytes_ -= std::int64_t(found.mapped().payload.size());
      return std::move(found.mapped());
    }
    if (const auto ended = ended_.find(key.message.from); ended != ended_.end()) {
      throw RunError(ended->second + "; " + to_string(key.message) + " of step " +
                     std::to_string(key.step) + " will never come");
    }
    if (late) return std::nullopt;
  }
}

}  // namespace nebula
