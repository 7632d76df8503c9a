#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace nebula {

/// How far the connections to one peer are.
struct PeerState {
  int joined = 0;
  /// All connections stand and its clock is known.
  bool ready = false;
  /// All connections are closed, whoever began.
  bool closed = false;
  /// What last stood in the way.
  std::string problem;
};

/// The peers' states, for the thread that waits for them in connect(), abort() and close().
class PeerBoard {
 public:
  using States = std::map<int, PeerState>;

  void update(int stage, const std::function<void(PeerState&)>& change) {
    const std::lock_guard lock(mutex_);
    change(states_[stage]);
    changed_.notify_all();
  }

  void fail(const std::string& why) {
    const std::lock_guard lock(mutex_);
    if (failure_.empty()) failure_ = why;
    changed_.notify_all();
  }

  States states() const {
    const std::lock_guard lock(mutex_);
    return states_;
  }

  /// Until every peer is `done`, something failed (where `or_failure`), or it is `until`. True when
  /// all are done.
  bool wait(std::chrono::steady_clock::time_point until, bool (*done)(const PeerState&),
            bool or_failure) {
    std::unique_lock lock(mutex_);
    const auto all_done = [&] {
      for (const auto& [stage, state] : states_) {
        if (!done(state)) return false;
      }
      return true;
    };
    changed_.wait_until(lock, until,
                        [&] { return all_done() || (or_failure && !failure_.empty()); });
    return all_done();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  States states_;
  std::string failure_;
};

}  // namespace nebula
