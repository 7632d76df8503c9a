#pragma once

#include <torch/torch.h>

#include "core/model.hpp"

namespace nebula {

/// Token ids (b, t) int64 -> (b, t, width) float32.
struct EmbeddingLayerImpl : torch::nn::Module {
  explicit EmbeddingLayerImpl(const Model& model);
  torch::Tensor forward(const torch::Tensor& ids);

  torch::Tensor tokens;     ///< (vocabulary, width)
  torch::Tensor positions;  ///< (max_positions, width), undefined unless learned
};
TORCH_MODULE(EmbeddingLayer);

/// LayerNorm or RMSNorm over the last dimension.
struct NormLayerImpl : torch::nn::Module {
  explicit NormLayerImpl(const Model& model);
  torch::Tensor forward(const torch::Tensor& x);

  torch::Tensor weight;
  torch::Tensor bias;
  double epsilon;
};
TORCH_MODULE(NormLayer);

/// Pre-norm transformer block with causal attention: (b, t, width) -> (b, t, width).
struct BlockLayerImpl : torch::nn::Module {
  explicit BlockLayerImpl(const Model& model);
  torch::Tensor forward(const torch::Tensor& x);

 private:
  torch::Tensor attend(const torch::Tensor& x);
  torch::Tensor rotate(const torch::Tensor& x) const;

  Model model_;
  NormLayer attention_norm_;
  torch::nn::Linear qkv_;
  torch::nn::Linear projection_;
  NormLayer feedforward_norm_;
  torch::nn::Linear up_;
  torch::nn::Linear down_;
  torch::Tensor cos_;  ///< (max_positions, head_width / 2), rotary only
  torch::Tensor sin_;
};
TORCH_MODULE(BlockLayer);

/// Final norm and output projection: (b, t, width) -> (b, t, vocabulary).
struct HeadLayerImpl : torch::nn::Module {
  explicit HeadLayerImpl(const Model& model);
  torch::Tensor forward(const torch::Tensor& x);

  NormLayer norm;
  torch::Tensor weight;  ///< (vocabulary, width); a tied model's is the embedding's
};
TORCH_MODULE(HeadLayer);

}  // namespace nebula
