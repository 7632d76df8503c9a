#include "exec/adamw_kernel.hpp"

#include <array>
#include <cmath>

namespace nebula {

void update_parameters(const AdamStep& s, std::int64_t n, float* __restrict weight,
                       const float* __restrict gradient, float* __restrict first,
                       float* __restrict second) {
  for (std::int64_t i = 0; i < n; ++i) {
    const float g = gradient[i] * s.scale;
    const float m = s.beta1 * first[i] + (1 - s.beta1) * g;
    const float v = s.beta2 * second[i] + (1 - s.beta2) * g * g;
    first[i] = m;
    second[i] = v;
    weight[i] = weight[i] * s.keep - s.rate * m / (std::sqrt(v) * s.root_bias2 + s.epsilon);
  }
}

// Independent partial sums let the compiler use vectors; the order is fixed, so the result is too.
double sum_of_squares(const float* values, std::int64_t n) {
  constexpr std::int64_t lanes = 16;
  std::array<double, lanes> sums{};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (std::int64_t k = 0; k < lanes; ++k) {
      const double value = values[i + k];
      sums[std::size_t(k)] += value * value;
    }
  }
  for (; i < n; ++i) sums[0] += double(values[i]) * values[i];
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace nebula
