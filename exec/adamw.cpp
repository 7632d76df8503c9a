#include "exec/adamw.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "exec/adamw_kernel.hpp"

namespace nebula {
namespace {

void update_any(const AdamStep& s, torch::Tensor weight, const torch::Tensor& gradient,
                torch::Tensor first, torch::Tensor second) {
  const torch::Tensor g = gradient * s.scale;
  first.mul_(s.beta1).add_(g, 1 - s.beta1);
  second.mul_(s.beta2).addcmul_(g, g, 1 - s.beta2);
  weight.mul_(s.keep).addcdiv_(first, second.sqrt().mul_(s.root_bias2).add_(s.epsilon), -s.rate);
}

}  // namespace

AdamW::AdamW(const Optimizer& settings, const std::vector<Parameter>& parameters)
    : settings_(settings), parameters_(parameters) {
  for (const Parameter& parameter : parameters_) {
    first_.push_back(torch::zeros_like(parameter.tensor, torch::MemoryFormat::Contiguous));
    second_.push_back(torch::zeros_like(parameter.tensor, torch::MemoryFormat::Contiguous));
  }
}

double AdamW::squared_norm() const {
  double total = 0;
  for (const Parameter& parameter : parameters_) {
    const torch::Tensor gradient = parameter.tensor.grad();
    if (parameter.is_copy || !gradient.defined()) continue;
    if (gradient.is_cpu()) {
      const torch::Tensor flat = gradient.contiguous();
      total += sum_of_squares(flat.data_ptr<float>(), flat.numel());
    } else {
      total += gradient.to(torch::kFloat64).square().sum().item<double>();
    }
  }
  return total;
}

void AdamW::update(int step, int steps, double scale) {
  torch::NoGradGuard no_grad;
  const double rate = learning_rate(settings_, step, steps);
  const double bias1 = 1 - std::pow(settings_.beta1, step + 1);
  const double bias2 = 1 - std::pow(settings_.beta2, step + 1);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    torch::Tensor weight = parameters_[i].tensor;
    const torch::Tensor gradient = weight.grad();
    if (!gradient.defined()) continue;
    const double decay = parameters_[i].decays ? settings_.weight_decay : 0;
    const AdamStep s{float(scale),           float(settings_.beta1),      float(settings_.beta2),
                     float(rate / bias1),    float(1 / std::sqrt(bias2)), float(settings_.epsilon),
                     float(1 - rate * decay)};
    if (weight.is_cpu()) {
      const torch::Tensor flat = gradient.contiguous();
      update_parameters(s, weight.numel(), weight.data_ptr<float>(), flat.data_ptr<float>(),
                        first_[i].data_ptr<float>(), second_[i].data_ptr<float>());
    } else {
      update_any(s, weight, gradient, first_[i], second_[i]);
    }
  }
}

void AdamW::clear_gradients() {
  for (Parameter& parameter : parameters_) parameter.tensor.mutable_grad() = torch::Tensor();
}

double learning_rate(const Optimizer& settings, int step, int steps) {
  if (step < settings.warmup_steps) {
    return settings.learning_rate * (step + 1) / settings.warmup_steps;
  }
  const int span = std::max(1, steps - 1 - settings.warmup_steps);
  const double done = std::min(1.0, double(step - settings.warmup_steps) / span);
  const double cosine = (1 + std::cos(std::numbers::pi * done)) / 2;
  return settings.min_learning_rate +
         (settings.learning_rate - settings.min_learning_rate) * cosine;
}

double clip_scale(const Optimizer& settings, double norm) {
  if (settings.clip_norm <= 0 || norm <= settings.clip_norm) return 1;
  return settings.clip_norm / norm;
}

}  // namespace nebula
