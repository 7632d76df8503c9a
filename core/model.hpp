#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/fields.hpp"

namespace nebula {

enum class Architecture { decoder, encoder, encoder_decoder };
enum class Norm { layer_norm, rms_norm };
enum class Feedforward { gelu, swiglu };
enum class Positions { learned, rotary };

/// The kinds of layer a stage is made of; costs are per kind.
enum class LayerKind { embedding, block, head };
std::string_view to_string(LayerKind kind);

/// A language model's shape. Layers are numbered 0 (embedding), 1..blocks (blocks),
/// blocks + 1 (final norm, output projection and loss).
struct Model {
  std::string name;
  Architecture architecture = Architecture::decoder;
  int blocks = 0;
  int width = 0;
  int heads = 0;
  /// Less than heads for grouped-query attention.
  int kv_heads = 0;
  int feedforward_width = 0;
  int vocabulary = 0;
  /// Longest sequence; the size of the table when positions are learned.
  int max_positions = 0;
  Norm norm = Norm::layer_norm;
  Feedforward feedforward = Feedforward::gelu;
  Positions positions = Positions::rotary;
  double norm_epsilon = 1e-5;
  double rotary_base = 10000;
  bool biases = false;
  /// Output projection = token embedding.
  bool tied_embeddings = false;
  bool operator==(const Model&) const = default;

  int layer_count() const { return blocks + 2; }
  int head_width() const { return width / heads; }
};

LayerKind layer_kind(const Model& model, int layer);
/// Parameters of one layer of the kind; the head of a tied model counts the shared table too
/// (a stage that holds both ends holds it once: see stage_parameters).
std::int64_t layer_parameters(const Model& model, LayerKind kind);
/// Parameters held by a stage of layers [first, last).
std::int64_t stage_parameters(const Model& model, int first, int last);
std::int64_t model_parameters(const Model& model);
/// Multiply-adds count two: forward FLOPs of one layer for one sequence of `length` tokens,
/// matrix products and attention scores. Backward takes twice as many.
double forward_flops(const Model& model, LayerKind kind, int length);
/// float32 bytes kept for the backward by one layer for one sequence, estimated.
double saved_bytes(const Model& model, LayerKind kind, int length, bool half_precision);

/// Reads our TOML or a Hugging Face config.json (gpt2, llama and bert families), as it is.
Model read_model_file(const std::string& path);
Model read_model(Fields fields);
Node write_model(const Model& model);

}  // namespace nebula
