#include "core/costs.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace nebula {
namespace {

Curve read_curve(Fields fields) {
  Curve curve;
  curve.sequences = fields.numbers("sequences");
  curve.values = fields.numbers("values");
  if (curve.sequences.empty() || curve.sequences.size() != curve.values.size()) {
    fields.fail("values", "expected as many values as sequences, at least one");
  }
  for (std::size_t i = 0; i < curve.sequences.size(); ++i) {
    const double before = i ? curve.sequences[i - 1] : 0;
    if (curve.sequences[i] <= before) fields.fail("sequences", "must grow, from more than zero");
    if (curve.values[i] < 0) fields.fail("values", "holds a negative number");
  }
  fields.finish();
  return curve;
}

Node write_curve(const Curve& curve) {
  return TableWriter().set("sequences", curve.sequences).set("values", curve.values).node();
}

DeviceCosts read_device_costs(Fields& fields) {
  DeviceCosts costs;
  for (auto& [kind, table] : fields.named_tables("layers")) {
    LayerCosts layer;
    layer.forward_s = read_curve(table.table("forward_s"));
    layer.backward_s = read_curve(table.table("backward_s"));
    layer.saved_bytes = read_curve(table.table("saved_bytes"));
    layer.update_s = table.quantity("update", Unit::seconds);
    table.finish();
    costs.layers[kind] = layer;
  }
  for (const LayerKind kind : {LayerKind::embedding, LayerKind::block, LayerKind::head}) {
    if (!costs.layers.contains(std::string(to_string(kind)))) {
      fields.fail("layers", "has no '" + std::string(to_string(kind)) + "'");
    }
  }
  for (auto& [name, table] : fields.named_tables("codecs")) {
    CodecCosts codec;
    codec.fixed_s = table.quantity("fixed", Unit::seconds);
    codec.encode_per_element_s = table.quantity("encode_per_element", Unit::seconds);
    codec.decode_per_element_s = table.quantity("decode_per_element", Unit::seconds);
    table.finish();
    costs.codecs[name] = codec;
  }
  costs.op_overhead_s = fields.quantity_or("op_overhead", Unit::seconds, 0);
  costs.step_overhead_s = fields.quantity_or("step_overhead", Unit::seconds, 0);
  costs.source = fields.text("source", "");
  fields.finish();
  return costs;
}

Node write_device_costs(const DeviceCosts& costs) {
  NodeTable layers;
  for (const auto& [kind, layer] : costs.layers) {
    layers.emplace_back(kind, TableWriter()
                                  .set("forward_s", write_curve(layer.forward_s))
                                  .set("backward_s", write_curve(layer.backward_s))
                                  .set("saved_bytes", write_curve(layer.saved_bytes))
                                  .set("update_s", layer.update_s)
                                  .node());
  }
  NodeTable codecs;
  for (const auto& [name, codec] : costs.codecs) {
    codecs.emplace_back(name, TableWriter()
                                  .set("fixed_s", codec.fixed_s)
                                  .set("encode_per_element_s", codec.encode_per_element_s)
                                  .set("decode_per_element_s", codec.decode_per_element_s)
                                  .node());
  }
  return TableWriter()
      .set("layers", Node{std::move(layers), 0})
      .set("codecs", Node{std::move(codecs), 0})
      .set("op_overhead_s", costs.op_overhead_s)
      .set("step_overhead_s", costs.step_overhead_s)
      .set("source", costs.source)
      .node();
}

// Matrix products in float32 run below the bf16 peak: at a quarter on CPUs with bf16 units, at
// half on accelerators (TF32).
double reached_flops_per_s(const Device& device, Precision precision) {
  const double rate = device.peak_flops_per_s * device.reached;
  if (precision == Precision::bf16) return rate;
  return device.threads > 0 ? rate / 4 : rate / 2;
}

DeviceCosts device_costs(const Device& device, const Model& model, const Job& job) {
  DeviceCosts costs;
  costs.source = "first principles, " + device.source;
  const double flops_per_s = reached_flops_per_s(device, job.precision);
  // Without a figure: 20 GB/s for CPU threads, 1 TB/s for accelerators.
  const double fallback = device.threads > 0 ? 20e9 : 1e12;
  const double bytes_per_s = device.memory_bytes_per_s > 0 ? device.memory_bytes_per_s : fallback;
  for (const LayerKind kind : {LayerKind::embedding, LayerKind::block, LayerKind::head}) {
    LayerCosts layer;
    const double forward = forward_flops(model, kind, job.sequence_length) / flops_per_s;
    const bool half = job.precision == Precision::bf16;
    layer.forward_s = {{1}, {forward}};
    layer.backward_s = {{1}, {2 * forward}};
    layer.saved_bytes = {{1}, {saved_bytes(model, kind, job.sequence_length, half)}};
    // AdamW reads weight, gradient and two moments and writes three of them, in float32.
    layer.update_s = 28 * double(layer_parameters(model, kind)) / bytes_per_s;
    costs.layers[std::string(to_string(kind))] = layer;
  }
  for (const CodecInfo& codec : codecs()) {
    // Reads float32 and writes the code, or the other way round.
    const double element = (32 + codec.bits) / 8.0 / bytes_per_s;
    costs.codecs[std::string(codec.name)] = {0, element, element};
  }
  return costs;
}

}  // namespace

double Curve::at(double n) const {
  if (sequences.size() == 1) return values[0] * n / sequences[0];
  std::size_t upper = 1;
  while (upper + 1 < sequences.size() && sequences[upper] < n) ++upper;
  const double x0 = sequences[upper - 1];
  const double x1 = sequences[upper];
  const double share = (n - x0) / (x1 - x0);
  return std::max(0.0, values[upper - 1] + share * (values[upper] - values[upper - 1]));
}

Curve Curve::scaled(double factor) const {
  Curve result = *this;
  for (double& value : result.values) value *= factor;
  return result;
}

std::string link_name(std::string_view from, std::string_view to) {
  return std::string(from) + "->" + std::string(to);
}

Costs first_principles(const Cluster& cluster, const Model& model, const Job& job) {
  Costs costs;
  costs.source = "first principles";
  costs.model = model.name;
  costs.precision = job.precision;
  costs.sequence_length = job.sequence_length;
  for (const Device& device : cluster.devices) {
    costs.devices[device.kind] = device_costs(device, model, job);
  }
  return costs;
}

void check_costs(const Costs& costs, const Cluster& cluster, const Model& model, const Job& job,
                 const std::string& where) {
  if (costs.model != model.name) {
    throw InputError(where + ": model",
                     "the costs are of '" + costs.model + "', not of '" + model.name + "'");
  }
  if (costs.sequence_length != job.sequence_length) {
    throw InputError(where + ": sequence_length",
                     "the costs are of " + std::to_string(costs.sequence_length) +
                         " tokens, the job has " + std::to_string(job.sequence_length));
  }
  if (costs.precision != job.precision) {
    throw InputError(where + ": precision", "the costs are of another precision than the job's");
  }
  for (const Device& device : cluster.devices) {
    if (!costs.devices.contains(device.kind)) {
      throw InputError(where + ": devices",
                       "has no costs of the cluster's device '" + device.kind + "'");
    }
  }
}

Costs read_costs_file(const std::string& path) {
  const Node node = read_node_file(path);
  Fields fields(node, path);
  fields.expect_format("nebula-costs", 1);
  Costs costs;
  constexpr std::string_view sources[] = {"first principles", "profile", "calibration"};
  costs.source = sources[fields.choice("source", {"first principles", "profile", "calibration"})];
  costs.model = fields.text("model");
  costs.precision = Precision(fields.choice("precision", {"float32", "bf16"}));
  costs.sequence_length = fields.count("sequence_length");
  for (auto& [kind, table] : fields.named_tables("devices")) {
    costs.devices[kind] = read_device_costs(table);
  }
  if (fields.has("links")) {
    for (auto& [name, table] : fields.named_tables("links")) {
      LinkCosts link;
      link.rate_bytes_per_s = table.quantity("rate", Unit::bytes_per_s);
      if (link.rate_bytes_per_s <= 0) table.fail("rate_bytes_per_s", "must be more than zero");
      link.latency_s = table.quantity("latency", Unit::seconds);
      link.window_bytes = table.quantity_or("window", Unit::bytes, 0);
      link.source = table.text("source", "");
      table.finish();
      costs.links[name] = link;
    }
  }
  if (fields.has("residuals")) {
    for (Fields& table : fields.tables("residuals")) {
      costs.residuals.push_back({table.text("what"), table.quantity("predicted", Unit::seconds),
                                 table.quantity("measured", Unit::seconds)});
      table.finish();
    }
  }
  fields.finish();
  return costs;
}

std::string to_json(const Costs& costs) {
  NodeTable devices;
  for (const auto& [kind, device] : costs.devices) {
    devices.emplace_back(kind, write_device_costs(device));
  }
  NodeTable links;
  for (const auto& [name, link] : costs.links) {
    links.emplace_back(name, TableWriter()
                                 .set("rate_bytes_per_s", link.rate_bytes_per_s)
                                 .set("latency_s", link.latency_s)
                                 .set("window_bytes", link.window_bytes)
                                 .set("source", link.source)
                                 .node());
  }
  NodeList residuals;
  for (const Residual& residual : costs.residuals) {
    residuals.push_back(TableWriter()
                            .set("what", residual.what)
                            .set("predicted_s", residual.predicted_s)
                            .set("measured_s", residual.measured_s)
                            .node());
  }
  return to_json(TableWriter()
                     .set("format", "nebula-costs")
                     .set("version", 1)
                     .set("source", costs.source)
                     .set("model", costs.model)
                     .set("precision", costs.precision == Precision::bf16 ? "bf16" : "float32")
                     .set("sequence_length", costs.sequence_length)
                     .set("devices", Node{std::move(devices), 0})
                     .set("links", Node{std::move(links), 0})
                     .set("residuals", Node{std::move(residuals), 0})
                     .node());
}

}  // namespace nebula
