#pragma once

#include <stdexcept>
#include <string>

namespace nebula {

/// Exit codes of all three programs.
enum class ExitCode { done = 0, failed = 1, bad_input = 2, interrupted = 3 };

/// The user's input is wrong: a file, a key, an option. Leads to exit code 2.
///
/// `where` names the file with its line or key ("cluster.toml:12: links[0].rate"), `problem` says
/// what is wrong with it and, where that is not obvious, what was expected.
class InputError : public std::runtime_error {
 public:
  InputError(const std::string& where, const std::string& problem)
      : std::runtime_error(where.empty() ? problem : where + ": " + problem) {}
};

/// The work itself failed (a peer died, a disk is full). Leads to exit code 1.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The run was stopped by a signal after its state was saved. Leads to exit code 3.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace nebula
