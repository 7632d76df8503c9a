#pragma once

#include <cstddef>
#include <memory>

#include "sim/simulate.hpp"

namespace nebula {

/// SimGrid's engine with a platform of `stages` hosts and `lines` links, which simulates one case
/// after another.
///
/// A process can have one in its life, it leaves signal handlers and exit handlers behind, and a
/// case that fails leaves it unusable: it belongs in a child process (process_pool).
///
/// The engine's clock can't be set back, and floating-point times depend on where they start. So
/// every case is scaled by a power of two to last less than one engine second, and case i starts
/// at engine second 128 + i. All clock values then lie between 128 and 256, where neighbouring
/// doubles have one distance, so that a case's rounding is the same wherever it starts.
class Engine {
 public:
  /// Cases that one engine can run.
  static constexpr std::size_t most_cases = 128;

  Engine(int stages, int lines);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Costs and lists must have passed check_case. Throws RunError when the lists stand still.
  Simulation run(const SimulationCase& work);

 private:
  struct Platform;
  std::unique_ptr<Platform> platform_;
  std::size_t cases_ = 0;
};

}  // namespace nebula
