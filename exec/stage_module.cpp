#include "exec/stage_module.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "exec/torch_compat.hpp"

namespace nebula {
namespace {

std::uint64_t layer_seed(std::uint64_t seed, int layer) {
  // splitmix64's finaliser, so that neighbouring seeds and layers have unrelated streams.
  std::uint64_t x = seed * 0x9E3779B97F4A7C15ULL + std::uint64_t(layer + 1);
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

void fill(const std::string& name, torch::Tensor& tensor, const Model& model,
          torch::Generator& generator) {
  torch::NoGradGuard no_grad;
  const bool is_norm = name.find("norm") != std::string::npos;
  if (is_norm) return;
  if (name.ends_with("bias")) {
    tensor.zero_();
    return;
  }
  const bool to_residual =
      name.find("projection") != std::string::npos || name.find("down") != std::string::npos;
  const double deviation = to_residual ? 0.02 / std::sqrt(2.0 * model.blocks) : 0.02;
  tensor.normal_(0, deviation, generator);
}

}  // namespace

StageModule::StageModule(const Model& model, int first, int last, std::uint64_t seed,
                         torch::Device device)
    : model_(model), first_(first), last_(last), device_(device) {
  if (model.architecture != Architecture::decoder) {
    throw RunError("this version trains decoder models; '" + model.name + "' is of another kind");
  }
  if (first_stage()) embedding_ = EmbeddingLayer(model);
  for (int layer = first; layer < last; ++layer) {
    if (layer_kind(model, layer) == LayerKind::block) blocks_.emplace_back(model);
  }
  if (last_stage()) head_ = HeadLayer(model);
  collect_parameters(seed);
}

void StageModule::collect_parameters(std::uint64_t seed) {
  const auto collect = [&](torch::nn::Module& module, int layer) {
    auto generator = torch::make_generator<torch::CPUGeneratorImpl>(layer_seed(seed, layer));
    for (auto& item : module.named_parameters()) {
      fill(item.key(), item.value(), model_, generator);
      parameters_.push_back({"layer." + std::to_string(layer) + "." + item.key(), item.value(),
                             item.value().dim() >= 2, false});
    }
    module.to(device_);
  };
  if (embedding_) collect(*embedding_, 0);
  const int first_block = std::max(first_, 1);
  for (std::size_t b = 0; b < blocks_.size(); ++b) collect(*blocks_[b], first_block + int(b));
  if (!head_) return;
  collect(*head_, last_ - 1);
  if (!model_.tied_embeddings) return;
  // The head's table is the embedding's: share it, or draw the same numbers.
  const std::string name = "layer." + std::to_string(last_ - 1) + ".weight";
  const auto table_at = std::find_if(parameters_.begin(), parameters_.end(),
                                     [&](const Parameter& p) { return p.name == name; });
  if (embedding_) {
    parameters_.erase(table_at);
    head_->weight = embedding_->tokens;
    return;
  }
  torch::NoGradGuard no_grad;
  auto generator = torch::make_generator<torch::CPUGeneratorImpl>(layer_seed(seed, 0));
  torch::Tensor table = torch::empty_like(head_->weight, torch::kCPU);
  fill("tokens", table, model_, generator);
  head_->weight.copy_(table);
  table_at->is_copy = true;
}

torch::Tensor StageModule::forward(const torch::Tensor& input, Precision precision) {
  const AutocastScope autocast(precision, device_.type());
  torch::Tensor x = embedding_ ? embedding_(input) : input;
  for (BlockLayer& block : blocks_) x = block(x);
  return head_ ? head_(x) : x;
}

torch::Tensor StageModule::loss_sum(const torch::Tensor& logits, const torch::Tensor& targets,
                                    int ignored) {
  const torch::Tensor rows = logits.reshape({-1, logits.size(-1)}).to(torch::kFloat32);
  // No target is -100, so all count.
  const std::int64_t ignored_index = ignored >= 0 ? ignored : -100;
  return torch::nll_loss(torch::log_softmax(rows, -1), targets.reshape({-1}), {},
                         torch::Reduction::Sum, ignored_index);
}

torch::Tensor StageModule::tied_table() const {
  if (!model_.tied_embeddings) return {};
  if (embedding_) return embedding_->tokens;
  return head_ ? head_->weight : torch::Tensor();
}

std::int64_t valid_tokens(const torch::Tensor& targets, int ignored) {
  if (ignored < 0) return targets.numel();
  return targets.ne(ignored).sum().item<std::int64_t>();
}

}  // namespace nebula
