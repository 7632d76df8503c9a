#pragma once

#include <vector>

#include "core/schedule.hpp"

namespace nebula {

/// Runs one stage's op list in a World: simulated (sim/sim_world) or real (exec/exec_world).
///
/// A World has `receive(const Message&)` (blocks until it is there), `compute(const Op&)` and
/// `send(const Message&)` (never blocks).
template <typename World>
void run_stage(const Shape& shape, int stage, const std::vector<Op>& ops, World& world) {
  for (const Op& op : ops) {
    for (const Message& message : needs(shape, stage, op)) world.receive(message);
    world.compute(op);
    for (const Message& message : emits(shape, stage, op)) world.send(message);
  }
}

}  // namespace nebula
