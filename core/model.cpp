#include "core/model.hpp"

#include "core/error.hpp"

namespace nebula {
namespace {

std::int64_t norm_parameters(const Model& model) {
  return model.norm == Norm::layer_norm ? 2 * model.width : model.width;
}

std::int64_t linear_parameters(const Model& model, std::int64_t in, std::int64_t out) {
  return in * out + (model.biases ? out : 0);
}

void check_model(const Model& model, Fields& fields, std::string_view heads_key,
                 std::string_view kv_key) {
  if (model.width % model.heads != 0) {
    fields.fail(heads_key, std::to_string(model.heads) + " heads do not divide the width " +
                               std::to_string(model.width));
  }
  if (model.positions == Positions::rotary && model.head_width() % 2 != 0) {
    fields.fail(heads_key, "gives heads of odd width " + std::to_string(model.head_width()) +
                               "; rotary positions need an even one");
  }
  if (model.heads % model.kv_heads != 0) {
    fields.fail(kv_key, std::to_string(model.kv_heads) + " do not divide the " +
                            std::to_string(model.heads) + " heads");
  }
}

// Hugging Face's gpt2 family: learned positions, biases, tied unless the file says otherwise.
Model read_gpt2(Fields& fields) {
  Model model;
  model.blocks = fields.count("n_layer");
  model.width = fields.count("n_embd");
  model.heads = fields.count("n_head");
  model.kv_heads = model.heads;
  // Hugging Face writes "n_inner": null for the usual four times the width.
  model.feedforward_width = fields.is_null("n_inner") ? 4 * model.width : fields.count("n_inner");
  model.vocabulary = fields.count("vocab_size");
  model.max_positions = fields.has("n_positions") ? fields.count("n_positions") : 1024;
  model.positions = Positions::learned;
  model.norm_epsilon = fields.number_or("layer_norm_epsilon", 1e-5);
  model.biases = true;
  model.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  check_model(model, fields, "n_head", "n_head");
  return model;
}

Model read_llama(Fields& fields) {
  Model model;
  model.blocks = fields.count("num_hidden_layers");
  model.width = fields.count("hidden_size");
  model.heads = fields.count("num_attention_heads");
  model.kv_heads =
      fields.is_null("num_key_value_heads") ? model.heads : fields.count("num_key_value_heads");
  model.feedforward_width = fields.count("intermediate_size");
  model.vocabulary = fields.count("vocab_size");
  model.max_positions = fields.count_or("max_position_embeddings", 2048);
  model.norm = Norm::rms_norm;
  model.feedforward = Feedforward::swiglu;
  model.positions = Positions::rotary;
  model.norm_epsilon = fields.number_or("rms_norm_eps", 1e-6);
  model.rotary_base = fields.number_or("rope_theta", 10000);
  model.tied_embeddings = fields.flag_or("tie_word_embeddings", false);
  check_model(model, fields, "num_attention_heads", "num_key_value_heads");
  return model;
}

Model read_bert(Fields& fields) {
  Model model;
  model.architecture = Architecture::encoder;
  model.blocks = fields.count("num_hidden_layers");
  model.width = fields.count("hidden_size");
  model.heads = fields.count("num_attention_heads");
  model.kv_heads = model.heads;
  model.feedforward_width = fields.count("intermediate_size");
  model.vocabulary = fields.count("vocab_size");
  model.max_positions = fields.count_or("max_position_embeddings", 512);
  model.positions = Positions::learned;
  model.norm_epsilon = fields.number_or("layer_norm_eps", 1e-12);
  model.biases = true;
  model.tied_embeddings = fields.flag_or("tie_word_embeddings", true);
  check_model(model, fields, "num_attention_heads", "num_attention_heads");
  return model;
}

// A config.json has many keys that do not change the shape: unknown ones are left alone.
Model read_hugging_face(Fields fields, const std::string& path) {
  const std::string type = fields.text("model_type");
  Model model;
  if (type == "gpt2") {
    model = read_gpt2(fields);
  } else if (type == "llama" || type == "mistral" || type == "qwen2") {
    model = read_llama(fields);
    // Mistral and Qwen 2 shape their blocks as Llama does; Qwen 2's query biases are left out.
  } else if (type == "bert" || type == "electra" || type == "roberta") {
    model = read_bert(fields);
  } else {
    fields.fail("model_type", "is '" + type + "', expected one of gpt2, llama, mistral, qwen2, " +
                                  "bert, roberta, electra");
  }
  const auto slash = path.find_last_of('/');
  model.name = fields.text("_name_or_path", "");
  if (model.name.empty()) model.name = slash == std::string::npos ? type : path.substr(0, slash);
  return model;
}

}  // namespace

std::string_view to_string(LayerKind kind) {
  switch (kind) {
    case LayerKind::embedding:
      return "embedding";
    case LayerKind::block:
      return "block";
    case LayerKind::head:
      return "head";
  }
  return "";
}

LayerKind layer_kind(const Model& model, int layer) {
  if (layer == 0) return LayerKind::embedding;
  return layer <= model.blocks ? LayerKind::block : LayerKind::head;
}

std::int64_t layer_parameters(const Model& model, LayerKind kind) {
  const std::int64_t width = model.width;
  const std::int64_t table = width * model.vocabulary;
  switch (kind) {
    case LayerKind::embedding:
      return table + (model.positions == Positions::learned ? width * model.max_positions : 0);
    case LayerKind::head:
      return table + norm_parameters(model);
    case LayerKind::block:
      break;
  }
  const std::int64_t kv_width = std::int64_t{model.kv_heads} * model.head_width();
  const std::int64_t attention = linear_parameters(model, width, width + 2 * kv_width) +
                                 linear_parameters(model, width, width);
  const std::int64_t hidden = model.feedforward_width;
  const bool gated = model.feedforward == Feedforward::swiglu;
  const std::int64_t feedforward = linear_parameters(model, width, gated ? 2 * hidden : hidden) +
                                   linear_parameters(model, hidden, width);
  return attention + feedforward + 2 * norm_parameters(model);
}

std::int64_t stage_parameters(const Model& model, int first, int last) {
  std::int64_t total = 0;
  for (int layer = first; layer < last; ++layer) {
    total += layer_parameters(model, layer_kind(model, layer));
  }
  const bool both_ends = first == 0 && last == model.layer_count();
  if (model.tied_embeddings && both_ends) total -= std::int64_t{model.width} * model.vocabulary;
  return total;
}

std::int64_t model_parameters(const Model& model) {
  return stage_parameters(model, 0, model.layer_count());
}

double forward_flops(const Model& model, LayerKind kind, int length) {
  const double tokens = length;
  const double width = model.width;
  switch (kind) {
    case LayerKind::embedding:
      return tokens * width;
    case LayerKind::head:
      return 2 * tokens * width * model.vocabulary;
    case LayerKind::block:
      break;
  }
  const double matrices = double(layer_parameters(model, LayerKind::block));
  // Scores and their product with the values: two products of length x width a token.
  return tokens * (2 * matrices + 4 * double(length) * width);
}

double saved_bytes(const Model& model, LayerKind kind, int length, bool half_precision) {
  const double tokens = length;
  const double width = model.width;
  const double element = half_precision ? 2 : 4;
  switch (kind) {
    case LayerKind::embedding:
      return 8 * tokens;
    // Norm's input in float32, its output, and log-probabilities.
    case LayerKind::head:
      return tokens * (width * (4 + element) + model.vocabulary * (4 + element));
    case LayerKind::block:
      break;
  }
  const double kv = double(model.kv_heads) * model.head_width();
  const double gates = model.feedforward == Feedforward::swiglu ? 3 : 2;
  // Two norms with float32 inputs, q, k, v, attention output, residual sums, feed-forward.
  const double streams = tokens * (width * (2 * 4 + 5 * element) + 2 * kv * element +
                                   gates * model.feedforward_width * element);
  const double scores = double(model.heads) * tokens * tokens * (4 + element);
  return streams + scores;
}

Model read_model_file(const std::string& path) {
  const Node node = read_node_file(path);
  Fields fields(node, path);
  if (!fields.has("format") && fields.has("model_type")) return read_hugging_face(fields, path);
  fields.expect_format("nebula-model", 1);
  return read_model(std::move(fields));
}

Model read_model(Fields fields) {
  fields.skip("format");
  fields.skip("version");
  Model model;
  model.name = fields.text("name");
  model.architecture =
      Architecture(fields.choice_or("architecture", {"decoder", "encoder", "encoder_decoder"}, 0));
  model.blocks = fields.count("blocks");
  model.width = fields.count("width");
  model.heads = fields.count("heads");
  model.kv_heads = fields.count_or("kv_heads", model.heads);
  model.feedforward_width = fields.count_or("feedforward_width", 4 * model.width);
  model.vocabulary = fields.count("vocabulary", 2);
  model.max_positions = fields.count("max_positions");
  model.norm = Norm(fields.choice_or("norm", {"layer_norm", "rms_norm"}, 0));
  model.feedforward = Feedforward(fields.choice_or("feedforward", {"gelu", "swiglu"}, 0));
  model.positions = Positions(fields.choice_or("positions", {"learned", "rotary"}, 1));
  model.norm_epsilon = fields.number_or("norm_epsilon", model.norm_epsilon);
  model.rotary_base = fields.number_or("rotary_base", model.rotary_base);
  if (model.norm_epsilon <= 0) fields.fail("norm_epsilon", "must be more than zero");
  if (model.rotary_base <= 1) fields.fail("rotary_base", "must be more than one");
  model.biases = fields.flag_or("biases", model.biases);
  model.tied_embeddings = fields.flag_or("tied_embeddings", model.tied_embeddings);
  check_model(model, fields, "heads", "kv_heads");
  fields.finish();
  return model;
}

Node write_model(const Model& model) {
  constexpr std::string_view architectures[] = {"decoder", "encoder", "encoder_decoder"};
  return TableWriter()
      .set("name", model.name)
      .set("architecture", architectures[std::size_t(model.architecture)])
      .set("blocks", model.blocks)
      .set("width", model.width)
      .set("heads", model.heads)
      .set("kv_heads", model.kv_heads)
      .set("feedforward_width", model.feedforward_width)
      .set("vocabulary", model.vocabulary)
      .set("max_positions", model.max_positions)
      .set("norm", model.norm == Norm::layer_norm ? "layer_norm" : "rms_norm")
      .set("feedforward", model.feedforward == Feedforward::gelu ? "gelu" : "swiglu")
      .set("positions", model.positions == Positions::learned ? "learned" : "rotary")
      .set("norm_epsilon", model.norm_epsilon)
      .set("rotary_base", model.rotary_base)
      .set("biases", model.biases)
      .set("tied_embeddings", model.tied_embeddings)
      .node();
}

}  // namespace nebula
