#pragma once

#include <torch/torch.h>

#include "core/job.hpp"

// The differences between libtorch 1.13 and 2.x, and its global state, in one place.

namespace nebula {

/// Autocasts matrix products to bf16 on the device while it lives; does nothing for float32.
class AutocastScope {
 public:
  AutocastScope(Precision precision, torch::DeviceType device);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 private:
  bool active_ = false;
  torch::DeviceType device_;
};

/// Sets libtorch's threads (0 leaves them) and makes the allocator keep what it has: glibc
/// otherwise returns every large tensor to the kernel and faults it in again, which doubles the
/// time of a layer and makes it unpredictable. Then touches `reserve_bytes` of the heap (at most a
/// quarter of the memory that is free): a page touched for the first time is slow in a virtual
/// machine, and the first steps would pay for it. Call once, before the first tensor.
void prepare_torch(int threads, double reserve_bytes);

/// Where a stage of a device kind with this many CPU threads runs: accelerators have none.
/// Throws RunError when the plan wants an accelerator that this libtorch does not see.
torch::Device torch_device(int threads);

}  // namespace nebula
