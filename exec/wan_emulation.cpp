#include "exec/wan_emulation.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/error.hpp"

namespace nebula {
namespace {

using Shared = std::atomic_ref<std::int64_t>;
static_assert(Shared::is_always_lock_free, "the line's state is shared between processes");

constexpr std::size_t state_bytes = sizeof(std::int64_t);

std::int64_t* map_state(const std::string& path) {
  const auto fail = [&] {
    throw RunError(path + ": cannot keep the emulated line's state: " + std::strerror(errno));
  };
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0) fail();
  // Growing fills with zeros, which is a line that was always free.
  void* memory = MAP_FAILED;
  if (::ftruncate(file, state_bytes) == 0) {
    memory = ::mmap(nullptr, state_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  const int reason = errno;
  ::close(file);
  errno = reason;
  if (memory == MAP_FAILED) fail();
  return static_cast<std::int64_t*>(memory);
}

}  // namespace

EmulatedLink::EmulatedLink(const LinkEmulation& settings) : settings_(settings) {
  if (!(settings.rate_bytes_per_s > 0) || !std::isfinite(settings.rate_bytes_per_s)) {
    throw InputError("emulated line", "its rate must be positive");
  }
  if (!(settings.latency_s >= 0) || !std::isfinite(settings.latency_s)) {
    throw InputError("emulated line", "its latency must not be negative");
  }
  free_ns_ = map_state(settings.state_file);
  // The steady clock starts again when the host does: a file from before would block the line.
  using std::chrono::steady_clock;
  const std::int64_t now = std::chrono::nanoseconds(steady_clock::now().time_since_epoch()).count();
  std::int64_t free = Shared(*free_ns_).load();
  if (free > now + std::int64_t{60} * 1'000'000'000) {
    Shared(*free_ns_).compare_exchange_strong(free, now);
  }
}

EmulatedLink::~EmulatedLink() {
  ::munmap(free_ns_, state_bytes);
}

std::int64_t EmulatedLink::occupied_ns(std::int64_t bytes) const {
  return std::llround(double(bytes) / settings_.rate_bytes_per_s * 1e9);
}

std::int64_t EmulatedLink::claim(std::int64_t ready_ns, std::int64_t bytes) {
  const Shared free(*free_ns_);
  std::int64_t before = free.load();
  std::int64_t start = 0;
  do {
    start = std::max(ready_ns, before);
  } while (!free.compare_exchange_weak(before, start + occupied_ns(bytes)));
  return start;
}

std::int64_t EmulatedLink::arrival_ns(std::int64_t start_ns, std::int64_t bytes) const {
  return start_ns + occupied_ns(bytes) + std::llround(settings_.latency_s * 1e9);
}

}  // namespace nebula
