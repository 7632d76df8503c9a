#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace nebula {

struct PoolOptions {
  /// Processes at a time; 0 is one a core.
  int workers = 0;
  /// A process is replaced by a fresh one after this many tasks.
  std::size_t tasks_per_process = 1;
};

/// Cores that this process may use.
int usable_cores();

/// task(0) .. task(count - 1), each run in a forked child of this process, and what they returned.
///
/// For work that leaves traces in the process that does it. A task that throws, and a child that
/// dies, become a RunError with the message, once the others are through; of several, the one of
/// the lowest index. Must be called while the process has one thread.
std::vector<std::string> run_in_children(std::size_t count, const PoolOptions& options,
                                         const std::function<std::string(std::size_t)>& task);

}  // namespace nebula
