#include "core/model.hpp"

#include "core/error.hpp"
#include "tests/catch.hpp"

using namespace nebula;

namespace {

Model hugging_face(const std::string& text) {
  const std::string path = "build-model-test.config.json";
  write_file(path, text);
  const Model model = read_model_file(path);
  std::remove(path.c_str());
  return model;
}

}  // namespace

TEST_CASE("parameters of published models come out right") {
  const Model gpt2 = read_model_file(NEBULA_SOURCE_DIR "/examples/gpt2.config.json");
  CHECK(gpt2.tied_embeddings);
  // Hugging Face counts 124,439,808 for gpt2.
  CHECK(model_parameters(gpt2) == 124439808);

  // Llama 2 7B: 6,738,415,616 (meta-llama/Llama-2-7b-hf).
  const Model llama = hugging_face(R"({"model_type": "llama", "num_hidden_layers": 32,
    "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 32,
    "intermediate_size": 11008, "vocab_size": 32000, "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5, "torch_dtype": "float16", "use_cache": true})");
  CHECK(model_parameters(llama) == 6738415616);

  // Grouped queries, Mistral 7B: 7,241,732,096.
  const Model mistral = hugging_face(R"({"model_type": "mistral", "num_hidden_layers": 32,
    "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
    "intermediate_size": 14336, "vocab_size": 32000, "max_position_embeddings": 32768,
    "rms_norm_eps": 1e-5})");
  CHECK(model_parameters(mistral) == 7241732096);

  const Model bert = hugging_face(R"({"model_type": "bert", "num_hidden_layers": 12,
    "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072,
    "vocab_size": 30522, "max_position_embeddings": 512})");
  CHECK(bert.architecture == Architecture::encoder);
}

TEST_CASE("a stage's parameters add up to the model's, a shared table counting at both ends") {
  Model model = read_model_file(NEBULA_SOURCE_DIR "/examples/small.model.toml");
  for (const bool tied : {false, true}) {
    model.tied_embeddings = tied;
    const std::int64_t shared = tied ? std::int64_t{model.width} * model.vocabulary : 0;
    for (int cut = 1; cut < model.layer_count(); ++cut) {
      CHECK(stage_parameters(model, 0, cut) + stage_parameters(model, cut, model.layer_count()) ==
            model_parameters(model) + shared);
    }
  }
}

TEST_CASE("a model file reads back what was written") {
  const Model model = read_model_file(NEBULA_SOURCE_DIR "/examples/gpt2.config.json");
  CHECK(read_model(Fields(write_model(model), "written")) == model);
}

TEST_CASE("forward FLOPs are twice the matrix parameters a token, and attention") {
  Model model = read_model_file(NEBULA_SOURCE_DIR "/examples/small.model.toml");
  const double matrices = 12.0 * model.width * model.width;
  const double norms = 4.0 * model.width;
  CHECK(forward_flops(model, LayerKind::block, 128) ==
        Approx(128 * (2 * (matrices + norms) + 4.0 * 128 * model.width)));
}
