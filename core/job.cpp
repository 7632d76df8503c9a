#include "core/job.hpp"

#include "core/error.hpp"

namespace nebula {
namespace {

double fraction(Fields& fields, std::string_view key, double otherwise) {
  const double value = fields.number_or(key, otherwise);
  if (value < 0 || value >= 1) fields.fail(key, "must be in [0, 1)");
  return value;
}

double not_negative(Fields& fields, std::string_view key, double otherwise) {
  const double value = fields.number_or(key, otherwise);
  if (value < 0) fields.fail(key, "is negative");
  return value;
}

Optimizer read_optimizer(Fields fields) {
  Optimizer optimizer;
  optimizer.learning_rate = not_negative(fields, "learning_rate", optimizer.learning_rate);
  optimizer.min_learning_rate =
      not_negative(fields, "min_learning_rate", optimizer.learning_rate / 10);
  if (optimizer.min_learning_rate > optimizer.learning_rate) {
    fields.fail("min_learning_rate", "is more than learning_rate");
  }
  optimizer.warmup_steps = fields.count_or("warmup_steps", optimizer.warmup_steps, 0);
  optimizer.beta1 = fraction(fields, "beta1", optimizer.beta1);
  optimizer.beta2 = fraction(fields, "beta2", optimizer.beta2);
  optimizer.epsilon = not_negative(fields, "epsilon", optimizer.epsilon);
  optimizer.weight_decay = not_negative(fields, "weight_decay", optimizer.weight_decay);
  optimizer.clip_norm = not_negative(fields, "clip_norm", optimizer.clip_norm);
  fields.finish();
  return optimizer;
}

// A codec stands as its name alone, or as a table with settings.
std::vector<CodecSettings> read_codecs(Fields& fields, std::string_view key) {
  std::vector<CodecSettings> result;
  for (Node& item : fields.list(key)) {
    if (const auto* name = std::get_if<std::string>(&item.value)) {
      item.value = NodeTable{{"name", Node{*name, item.line}}};
    }
    result.push_back(read_codec(Fields(item, fields.file(), std::string(key))));
  }
  if (result.empty()) fields.fail(key, "is empty; float32 sends tensors as they are");
  return result;
}

}  // namespace

Job read_job_file(const std::string& path) {
  const Node node = read_node_file(path);
  Fields fields(node, path);
  fields.expect_format("nebula-job", 1);
  return read_job(std::move(fields));
}

Job read_job(Fields fields) {
  fields.skip("format");
  fields.skip("version");
  Job job;
  job.name = fields.text("name");
  job.global_batch = fields.count("global_batch");
  job.sequence_length = fields.count("sequence_length");
  job.steps = fields.count("steps");
  job.precision = Precision(fields.choice_or("precision", {"float32", "bf16"}, 0));
  job.seed = std::uint64_t(fields.integer_or("seed", 1, 0));
  if (fields.has("optimizer")) job.optimizer = read_optimizer(fields.table("optimizer"));
  job.ignored_token = fields.count_or("ignored_token", -1, -1);
  job.checkpoint_every = fields.count_or("checkpoint_every", 0, 0);
  job.heldout_sequences = fields.count_or("heldout_sequences", job.heldout_sequences, 0);
  if (fields.has("activation_codecs")) {
    job.activation_codecs = read_codecs(fields, "activation_codecs");
  }
  if (fields.has("gradient_codecs")) job.gradient_codecs = read_codecs(fields, "gradient_codecs");
  fields.finish();
  return job;
}

Node write_job(const Job& job) {
  const Optimizer& optimizer = job.optimizer;
  const auto codec_list = [](const std::vector<CodecSettings>& list) {
    NodeList nodes;
    for (const CodecSettings& codec : list) nodes.push_back(write_codec(codec));
    return Node{std::move(nodes), 0};
  };
  return TableWriter()
      .set("name", job.name)
      .set("global_batch", job.global_batch)
      .set("sequence_length", job.sequence_length)
      .set("steps", job.steps)
      .set("precision", job.precision == Precision::bf16 ? "bf16" : "float32")
      .set("seed", std::int64_t(job.seed))
      .set("optimizer", TableWriter()
                            .set("learning_rate", optimizer.learning_rate)
                            .set("min_learning_rate", optimizer.min_learning_rate)
                            .set("warmup_steps", optimizer.warmup_steps)
                            .set("beta1", optimizer.beta1)
                            .set("beta2", optimizer.beta2)
                            .set("epsilon", optimizer.epsilon)
                            .set("weight_decay", optimizer.weight_decay)
                            .set("clip_norm", optimizer.clip_norm)
                            .node())
      .set("ignored_token", job.ignored_token)
      .set("checkpoint_every", job.checkpoint_every)
      .set("heldout_sequences", job.heldout_sequences)
      .set("activation_codecs", codec_list(job.activation_codecs))
      .set("gradient_codecs", codec_list(job.gradient_codecs))
      .node();
}

}  // namespace nebula
