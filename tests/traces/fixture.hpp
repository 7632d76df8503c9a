#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/costs.hpp"
#include "core/plan.hpp"
#include "core/timeline.hpp"

namespace nebula::test {

/// A folder that disappears with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// A decoder of 8 blocks over stages of the given numbers of layers (10 in all), each in its own
/// cloud (c0, c1, ...). `devices` names each stage's kind of device.
Plan make_plan(const std::vector<int>& layers, const std::vector<std::string>& devices);

struct Noise {
  /// Standard deviation of the logarithm of every duration.
  double relative = 0;
  /// Fraction of ops and codings that take ten times as long.
  double stragglers = 0;
  std::uint64_t seed = 1;
};

/// The events of `steps` steps of the plan under these costs: a stage computes, encodes and
/// decodes one thing at a time, a line sends one message at a time. Times lie between
/// `other_s`-long pauses that no event explains, once a step.
std::vector<Event> run_plan(const Plan& plan, const Costs& costs, int steps, const Noise& noise,
                            double other_s = 0);

}  // namespace nebula::test
