#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "core/job.hpp"
#include "core/model.hpp"
#include "exec/layers.hpp"

namespace nebula {

/// A trained tensor with a name that does not depend on how the model was split:
/// "layer.3.qkv.weight".
struct Parameter {
  std::string name;
  torch::Tensor tensor;
  /// Weight decay is for matrices, not for norms and biases.
  bool decays = false;
  /// The last stage's copy of a tied embedding: its norm is counted by the first stage.
  bool is_copy = false;
};

/// Layers [first, last) of a model.
///
/// Weights depend on seed and layer only, so every split starts from the same model. Matrices are
/// normal with deviation 0.02, those that write to the residual stream smaller by
/// sqrt(2 x blocks), as in GPT-2.
class StageModule {
 public:
  StageModule(const Model& model, int first, int last, std::uint64_t seed, torch::Device device);

  /// ids (b, t) int64 on the first stage, (b, t, width) float32 elsewhere. Returns float32
  /// activations (b, t, width), or logits on the last stage.
  torch::Tensor forward(const torch::Tensor& input, Precision precision);
  /// Sum over targets other than `ignored` of the cross-entropy, float32. targets (b, t) int64.
  torch::Tensor loss_sum(const torch::Tensor& logits, const torch::Tensor& targets, int ignored);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// The embedding table that a tied model shares between its ends; undefined elsewhere.
  torch::Tensor tied_table() const;
  bool first_stage() const { return first_ == 0; }
  bool last_stage() const { return last_ == model_.layer_count(); }
  torch::Device device() const { return device_; }

 private:
  void collect_parameters(std::uint64_t seed);

  Model model_;
  int first_;
  int last_;
  torch::Device device_;
  EmbeddingLayer embedding_{nullptr};
  std::vector<BlockLayer> blocks_;
  HeadLayer head_{nullptr};
  std::vector<Parameter> parameters_;
};

/// Tokens in `targets` that count.
std::int64_t valid_tokens(const torch::Tensor& targets, int ignored);

}  // namespace nebula
