#pragma once

#include <atomic>
#include <string>
#include <vector>

namespace nebula {

/// A process to start: this program again with other arguments.
struct Child {
  std::string name;  ///< "stage 0 (north)"
  std::vector<std::string> arguments;
};

/// Runs the children side by side until all have ended. When `stop` becomes true they get SIGINT
/// (and may take their time to save); when one fails, the others have `grace_s` to notice by
/// themselves before they get SIGTERM. Returns the worst exit code by this order: 0, 3, 2, 1;
/// a child that died of a signal counts as 1 and is reported to stderr.
int supervise(const std::vector<Child>& children, const std::atomic<bool>& stop,
              double grace_s = 5);

/// Sets a flag on SIGINT and SIGTERM, once a process; a second signal ends it at once.
const std::atomic<bool>& stop_flag();

}  // namespace nebula
