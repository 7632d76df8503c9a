#pragma once

#include <optional>
#include <string>

#include "core/plan.hpp"

namespace nebula {

/// The least step seconds when one choice is taken away; absent where there is no such plan.
struct Alternatives {
  std::optional<double> one_stage;
  std::optional<double> float32;
  std::optional<double> plain_depth;
  std::optional<double> one_micro_batch;
};

/// One line that says why a plan won, by what each of its choices is worth.
std::string reason(const Plan& plan, double step_s, const Alternatives& without);

}  // namespace nebula
