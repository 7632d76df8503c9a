#pragma once

#include <cstdint>

#include "exec/clocks.hpp"

namespace nebula {

/// Seconds since a run's origin, as events have them.
struct Clock {
  WallClock wall;
  /// Unix time of second 0.
  std::int64_t origin_ns = wall.now_ns();

  double seconds(std::int64_t unix_ns) const { return double(unix_ns - origin_ns) * 1e-9; }
  double now() const { return seconds(wall.now_ns()); }
};

}  // namespace nebula
