#include "exec/torch_compat.hpp"

#include <algorithm>
#include <climits>
#include <cstdlib>

#include <ATen/autocast_mode.h>
#include <malloc.h>
#include <unistd.h>

#include "core/error.hpp"

namespace nebula {
namespace {

#if TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= 4)
void set_autocast(torch::DeviceType device, bool on) {
  at::autocast::set_autocast_dtype(device, torch::kBFloat16);
  at::autocast::set_autocast_enabled(device, on);
}
#else
void set_autocast(torch::DeviceType device, bool on) {
  if (device == torch::kCPU) {
    at::autocast::set_autocast_cpu_dtype(torch::kBFloat16);
    at::autocast::set_cpu_enabled(on);
  } else {
    at::autocast::set_autocast_gpu_dtype(torch::kBFloat16);
    at::autocast::set_enabled(on);
  }
}
#endif

void touch_heap(double bytes) {
  const double free_bytes = double(sysconf(_SC_AVPHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  const auto size = std::size_t(std::min(bytes, free_bytes / 4));
  if (size == 0) return;
  if (auto* memory = static_cast<volatile char*>(std::malloc(size))) {
    for (std::size_t i = 0; i < size; i += 4096) memory[i] = 0;
    std::free(const_cast<char*>(memory));
  }
}

}  // namespace

AutocastScope::AutocastScope(Precision precision, torch::DeviceType device) : device_(device) {
  if (precision == Precision::float32) return;
  active_ = true;
  at::autocast::increment_nesting();
  set_autocast(device_, true);
}

AutocastScope::~AutocastScope() {
  if (!active_) return;
  set_autocast(device_, false);
  // The cache holds the bf16 copies of weights that the next update changes.
  if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
}

void prepare_torch(int threads, double reserve_bytes) {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, INT_MAX);
  mallopt(M_TOP_PAD, 64 << 20);
  touch_heap(reserve_bytes);
  if (threads > 0) torch::set_num_threads(threads);
}

torch::Device torch_device(int threads) {
  if (threads > 0) return torch::kCPU;
  if (!torch::cuda::is_available()) {
    throw RunError("the plan puts this stage on an accelerator, but this libtorch sees none");
  }
  return torch::kCUDA;
}

}  // namespace nebula
