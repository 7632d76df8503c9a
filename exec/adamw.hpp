#pragma once

#include <vector>

#include "core/job.hpp"
#include "exec/stage_module.hpp"

namespace nebula {

/// AdamW (Loshchilov and Hutter, arXiv 1711.05101) over a stage's parameters: one pass over memory
/// a parameter on the CPU, libtorch's operations elsewhere.
class AdamW {
 public:
  AdamW(const Optimizer& settings, const std::vector<Parameter>& parameters);

  /// Sum of squared gradients of the parameters that this stage counts.
  double squared_norm() const;
  /// Applies gradients multiplied by `scale` as the update number `step` (from 0) of `steps`.
  void update(int step, int steps, double scale);
  void clear_gradients();

  /// First and second moments, in the parameters' order.
  std::vector<torch::Tensor>& first_moments() { return first_; }
  std::vector<torch::Tensor>& second_moments() { return second_; }

 private:
  Optimizer settings_;
  std::vector<Parameter> parameters_;
  std::vector<torch::Tensor> first_;
  std::vector<torch::Tensor> second_;
};

/// Linear warm-up to learning_rate, then a cosine to min_learning_rate at the last step.
double learning_rate(const Optimizer& settings, int step, int steps);
/// What gradients are multiplied by so that their norm is at most clip_norm.
double clip_scale(const Optimizer& settings, double norm);

}  // namespace nebula
