#pragma once

#include <cmath>
#include <cstdint>

#include "sim/simgrid_compat.hpp"

namespace nebula {

/// What seconds and bytes of one case are to the engine that runs it (see Engine).
struct EngineUnits {
  /// The first case begins here, the last one ends before twice this time.
  static constexpr double first_second = 128;

  /// Engine time at which the case begins.
  double origin = first_second;
  /// Engine seconds a second; a power of two, so that scaling loses nothing.
  double seconds = 1;
  /// Engine bytes a byte; a power of two. SimGrid sends whole bytes: its bytes are so much smaller
  /// than ours that this does not matter.
  double bytes = 1;

  /// Seconds since the case began.
  double now() const { return (simgrid::s4u::Engine::get_clock() - origin) / seconds; }
  /// Differences of less are rounding: four times the distance of the engine's clock values.
  double resolution() const { return 0x1p-50 * first_second / seconds; }

  double rate(double bytes_per_s) const { return bytes_per_s * bytes / seconds; }
  std::uint64_t size(double amount) const { return std::uint64_t(std::llround(amount * bytes)); }

  /// Blocks the calling actor until the case begins.
  void await_origin() const { simgrid::s4u::this_actor::sleep_until(origin); }
  /// Keeps the calling actor's host busy.
  void compute(double duration_s) const {
    if (duration_s > 0) simgrid::s4u::this_actor::execute(duration_s * seconds);
  }
};

}  // namespace nebula
