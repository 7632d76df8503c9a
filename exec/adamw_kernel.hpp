#pragma once

#include <cstdint>

namespace nebula {

/// The numbers of one AdamW step, the same for all elements of a parameter.
struct AdamStep {
  float scale;  ///< gradients are multiplied by it first
  float beta1;
  float beta2;
  float rate;        ///< learning rate / bias correction of the first moment
  float root_bias2;  ///< 1 / sqrt(bias correction of the second moment)
  float epsilon;
  float keep;  ///< 1 - learning rate x weight decay
};

/// One pass over n elements of weight, gradient, first and second moment.
void update_parameters(const AdamStep& step, std::int64_t n, float* weight, const float* gradient,
                       float* first, float* second);

/// In float64 and in a fixed order.
double sum_of_squares(const float* values, std::int64_t n);

}  // namespace nebula
