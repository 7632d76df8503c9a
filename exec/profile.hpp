#pragma once

#include <functional>
#include <string>

#include "core/cluster.hpp"
#include "core/costs.hpp"
#include "core/job.hpp"
#include "core/model.hpp"

namespace nebula {

struct ProfileOptions {
  /// Kind of device of the cluster file that this machine has.
  std::string device;
  /// Largest micro-batch measured, in sequences; 0: the job's global batch.
  int largest_micro_batch = 0;
  /// Timed repetitions of each figure; its median counts.
  int repetitions = 7;
};

/// Measures on this machine, with the device's threads: forward, backward and update seconds and
/// saved bytes of each kind of layer at micro-batches 1, 2, 4, ..., and each codec's speed.
/// `progress` is told what is being measured.
Costs profile(const Cluster& cluster, const Model& model, const Job& job,
              const ProfileOptions& options,
              const std::function<void(const std::string&)>& progress);

}  // namespace nebula
