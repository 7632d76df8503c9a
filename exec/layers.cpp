#include "exec/layers.hpp"

#include <cmath>
#include <limits>

namespace nebula {
namespace {

torch::nn::Linear linear(const Model& model, std::int64_t in, std::int64_t out) {
  return torch::nn::Linear(torch::nn::LinearOptions(in, out).bias(model.biases));
}

std::int64_t kv_width(const Model& model) {
  return std::int64_t{model.kv_heads} * model.head_width();
}

std::int64_t up_width(const Model& model) {
  const std::int64_t width = model.feedforward_width;
  return model.feedforward == Feedforward::swiglu ? 2 * width : width;
}

}  // namespace

EmbeddingLayerImpl::EmbeddingLayerImpl(const Model& model) {
  tokens = register_parameter("tokens", torch::empty({model.vocabulary, model.width}));
  if (model.positions == Positions::learned) {
    positions = register_parameter("positions", torch::empty({model.max_positions, model.width}));
  }
}

torch::Tensor EmbeddingLayerImpl::forward(const torch::Tensor& ids) {
  torch::Tensor x = torch::embedding(tokens, ids);
  if (positions.defined()) x = x + positions.slice(0, 0, ids.size(1));
  return x;
}

NormLayerImpl::NormLayerImpl(const Model& model) : epsilon(model.norm_epsilon) {
  weight = register_parameter("weight", torch::ones({model.width}));
  if (model.norm == Norm::layer_norm) {
    bias = register_parameter("bias", torch::zeros({model.width}));
  }
}

torch::Tensor NormLayerImpl::forward(const torch::Tensor& x) {
  if (bias.defined()) return torch::layer_norm(x, {x.size(-1)}, weight, bias, epsilon);
  return x * torch::rsqrt(x.pow(2).mean(-1, true) + epsilon) * weight;
}

BlockLayerImpl::BlockLayerImpl(const Model& model)
    : model_(model),
      attention_norm_(model),
      qkv_(linear(model, model.width, model.width + 2 * kv_width(model))),
      projection_(linear(model, model.width, model.width)),
      feedforward_norm_(model),
      up_(linear(model, model.width, up_width(model))),
      down_(linear(model, model.feedforward_width, model.width)) {
  register_module("attention_norm", attention_norm_);
  register_module("qkv", qkv_);
  register_module("projection", projection_);
  register_module("feedforward_norm", feedforward_norm_);
  register_module("up", up_);
  register_module("down", down_);
  if (model.positions == Positions::rotary) {
    const int half = model.head_width() / 2;
    const torch::Tensor frequencies =
        torch::pow(model.rotary_base, -torch::arange(half, torch::kFloat64) / half);
    const torch::Tensor angles =
        torch::outer(torch::arange(model.max_positions, torch::kFloat64), frequencies);
    cos_ = register_buffer("cos", angles.cos().to(torch::kFloat32));
    sin_ = register_buffer("sin", angles.sin().to(torch::kFloat32));
  }
}

// Rotary positions on (b, heads, t, head_width): the first half of a head turns with the second.
torch::Tensor BlockLayerImpl::rotate(const torch::Tensor& x) const {
  const std::int64_t t = x.size(2);
  const torch::Tensor cos = cos_.slice(0, 0, t).to(x.scalar_type());
  const torch::Tensor sin = sin_.slice(0, 0, t).to(x.scalar_type());
  const auto halves = x.chunk(2, -1);
  return torch::cat({halves[0] * cos - halves[1] * sin, halves[1] * cos + halves[0] * sin}, -1);
}

torch::Tensor BlockLayerImpl::attend(const torch::Tensor& x) {
  const std::int64_t b = x.size(0);
  const std::int64_t t = x.size(1);
  const std::int64_t head_width = model_.head_width();
  const auto parts =
      qkv_(x).split_with_sizes({model_.width, kv_width(model_), kv_width(model_)}, -1);
  const auto heads = [&](const torch::Tensor& part, int count) {
    return part.view({b, t, count, head_width}).transpose(1, 2);
  };
  torch::Tensor q = heads(parts[0], model_.heads);
  torch::Tensor k = heads(parts[1], model_.kv_heads);
  torch::Tensor v = heads(parts[2], model_.kv_heads);
  if (cos_.defined()) {
    q = rotate(q);
    k = rotate(k);
  }
  if (model_.kv_heads != model_.heads) {
    k = k.repeat_interleave(model_.heads / model_.kv_heads, 1);
    v = v.repeat_interleave(model_.heads / model_.kv_heads, 1);
  }
  torch::Tensor scores =
      torch::matmul(q * (1.0 / std::sqrt(double(head_width))), k.transpose(-2, -1));
  const torch::Tensor future =
      torch::ones({t, t}, torch::TensorOptions(torch::kBool).device(x.device())).triu(1);
  scores = scores.masked_fill(future, -std::numeric_limits<float>::infinity());
  const torch::Tensor mixed = torch::matmul(torch::softmax(scores, -1), v);
  return projection_(mixed.transpose(1, 2).reshape({b, t, model_.width}));
}

torch::Tensor BlockLayerImpl::forward(const torch::Tensor& x) {
  const torch::Tensor attended = x + attend(attention_norm_(x));
  torch::Tensor hidden = up_(feedforward_norm_(attended));
  if (model_.feedforward == Feedforward::swiglu) {
    const auto halves = hidden.chunk(2, -1);
    hidden = torch::silu(halves[0]) * halves[1];
  } else {
    hidden = torch::gelu(hidden);
  }
  return attended + down_(hidden);
}

HeadLayerImpl::HeadLayerImpl(const Model& model) : norm(model) {
  register_module("norm", norm);
  weight = register_parameter("weight", torch::empty({model.vocabulary, model.width}));
}

torch::Tensor HeadLayerImpl::forward(const torch::Tensor& x) {
  return torch::linear(norm(x), weight);
}

}  // namespace nebula
