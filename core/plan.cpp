#include "core/plan.hpp"

#include <algorithm>
#include <map>

#include "core/costs.hpp"
#include "core/error.hpp"

namespace nebula {
namespace {

std::string entry(const char* list, std::size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

void check_stages(const Plan& plan, const std::string& where) {
  if (plan.stages.empty()) throw InputError(where + ": stages", "is empty");
  if (plan.stages.size() > 256) throw InputError(where + ": stages", "has more than 256 stages");
  std::map<std::pair<std::string, std::string>, int> used;
  int next = 0;
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const StagePlan& stage = plan.stages[s];
    const std::string here = where + ": " + entry("stages", s);
    const Cloud* cloud = plan.cluster.find_cloud(stage.cloud);
    if (!cloud) throw InputError(here + ".cloud", "'" + stage.cloud + "' is not in the cluster");
    const auto group =
        std::find_if(cloud->devices.begin(), cloud->devices.end(),
                     [&](const DeviceGroup& candidate) { return candidate.kind == stage.device; });
    if (group == cloud->devices.end()) {
      throw InputError(here + ".device",
                       "cloud '" + stage.cloud + "' has no device of kind '" + stage.device + "'");
    }
    int& taken = used[{stage.cloud, stage.device}];
    taken += stage.replicas;
    if (taken > group->count) {
      throw InputError(here + ".replicas", "the stages up to here take " + std::to_string(taken) +
                                               " devices of kind '" + stage.device +
                                               "' in cloud '" + stage.cloud + "', which has " +
                                               std::to_string(group->count));
    }
    if (plan.micro_batch % stage.replicas != 0) {
      throw InputError(here + ".replicas", std::to_string(stage.replicas) +
                                               " do not divide the micro-batch of " +
                                               std::to_string(plan.micro_batch) + " sequences");
    }
    if (stage.first_layer != next || stage.last_layer <= stage.first_layer) {
      throw InputError(here + ".layers",
                       "expected a run of layers that starts at " + std::to_string(next));
    }
    next = stage.last_layer;
  }
  if (next != plan.model.layer_count()) {
    throw InputError(where + ": stages", "end at layer " + std::to_string(next) +
                                             ", but the model has layers 0 to " +
                                             std::to_string(plan.model.layer_count() - 1));
  }
}

void need_link(const Plan& plan, std::size_t a, std::size_t b, const std::string& here) {
  const std::string& from = plan.stages[a].cloud;
  const std::string& to = plan.stages[b].cloud;
  if (from != to && !plan.cluster.find_link(from, to)) {
    throw InputError(here, "the cluster has no link " + link_name(from, to));
  }
}

void check_boundaries(const Plan& plan, const std::string& where) {
  const std::size_t expected = plan.stages.size() - 1;
  if (plan.boundaries.size() != expected) {
    throw InputError(where + ": boundaries", "has " + std::to_string(plan.boundaries.size()) +
                                                 " entries, expected " + std::to_string(expected));
  }
  for (std::size_t b = 0; b < expected; ++b) {
    const BoundaryPlan& boundary = plan.boundaries[b];
    const std::string here = where + ": " + entry("boundaries", b);
    if (boundary.from != int(b) || boundary.to != int(b) + 1) {
      throw InputError(here, "expected to join stage " + std::to_string(b) + " to stage " +
                                 std::to_string(b + 1));
    }
    need_link(plan, b, b + 1, here);
    need_link(plan, b + 1, b, here);
  }
  if (plan.ties_stages()) {
    need_link(plan, 0, plan.stages.size() - 1, where + ": tied");
    need_link(plan, plan.stages.size() - 1, 0, where + ": tied");
  }
}

StagePlan read_stage(Fields& fields) {
  StagePlan stage;
  stage.part = fields.text("part", stage.part);
  stage.cloud = fields.text("cloud");
  stage.device = fields.text("device");
  stage.replicas = fields.count_or("replicas", 1);
  stage.threads = fields.count_or("threads", 1, 0);
  const auto layers = fields.counts("layers", 0);
  if (layers.size() != 2) fields.fail("layers", "expected [first, one past the last]");
  stage.first_layer = layers[0];
  stage.last_layer = layers[1];
  stage.recompute = fields.flag_or("recompute", false);
  fields.finish();
  return stage;
}

BoundaryPlan read_boundary(Fields& fields) {
  BoundaryPlan boundary;
  boundary.from = fields.count("from", 0);
  boundary.to = fields.count("to", 0);
  boundary.payload = Payload(fields.choice_or("payload", {"activations", "token_ids"}, 0));
  boundary.returns_gradient = fields.flag_or("returns_gradient", true);
  boundary.forward = read_codec(fields.table("forward"));
  boundary.backward = read_codec(fields.table("backward"));
  boundary.connections = fields.count_or("connections", 1);
  fields.finish();
  return boundary;
}

Prediction read_prediction(Fields fields) {
  Prediction predicted;
  predicted.step_s = fields.number("step_s");
  predicted.bubble = fields.number("bubble");
  predicted.tokens_per_s = fields.number("tokens_per_s");
  predicted.memory_bytes = fields.numbers("memory_bytes");
  predicted.costs_source = fields.text("costs_source");
  predicted.reason = fields.text("reason", "");
  fields.finish();
  return predicted;
}

Node write_stages(const Plan& plan) {
  NodeList list;
  for (const StagePlan& stage : plan.stages) {
    list.push_back(TableWriter()
                       .set("part", stage.part)
                       .set("cloud", stage.cloud)
                       .set("device", stage.device)
                       .set("replicas", stage.replicas)
                       .set("threads", stage.threads)
                       .set("layers", std::vector<int>{stage.first_layer, stage.last_layer})
                       .set("recompute", stage.recompute)
                       .node());
  }
  return {std::move(list), 0};
}

Node write_boundaries(const Plan& plan) {
  NodeList list;
  for (const BoundaryPlan& boundary : plan.boundaries) {
    list.push_back(
        TableWriter()
            .set("from", boundary.from)
            .set("to", boundary.to)
            .set("payload", boundary.payload == Payload::activations ? "activations" : "token_ids")
            .set("returns_gradient", boundary.returns_gradient)
            .set("forward", write_codec(boundary.forward))
            .set("backward", write_codec(boundary.backward))
            .set("connections", boundary.connections)
            .node());
  }
  return {std::move(list), 0};
}

// What decides the training and the wire.
void write_contract(TableWriter& table, const Plan& plan) {
  table.set("model", write_model(plan.model))
      .set("job", write_job(plan.job))
      .set("stages", write_stages(plan))
      .set("boundaries", write_boundaries(plan))
      .set("micro_batch", plan.micro_batch)
      .set("micro_batches", plan.micro_batches)
      .set("schedule", write_schedule(plan.schedule))
      .set("tied", write_codec(plan.tied));
}

Plan read_plan(Fields fields) {
  fields.expect_format("nebula-plan", 1);
  Plan plan;
  plan.model = read_model(fields.table("model"));
  plan.job = read_job(fields.table("job"));
  plan.cluster = read_cluster(fields.table("cluster"));
  for (Fields& table : fields.tables("stages")) plan.stages.push_back(read_stage(table));
  for (Fields& table : fields.tables("boundaries")) {
    plan.boundaries.push_back(read_boundary(table));
  }
  plan.micro_batch = fields.count("micro_batch");
  plan.micro_batches = fields.count("micro_batches");
  plan.schedule = read_schedule(fields.table("schedule"));
  if (fields.has("tied")) plan.tied = read_codec(fields.table("tied"));
  if (fields.has("predicted")) plan.predicted = read_prediction(fields.table("predicted"));
  fields.finish();
  validate(plan, fields.file());
  return plan;
}

}  // namespace

void validate(const Plan& plan, const std::string& where) {
  check_stages(plan, where);
  check_boundaries(plan, where);
  if (std::int64_t{plan.micro_batch} * plan.micro_batches != plan.job.global_batch) {
    throw InputError(where + ": micro_batches",
                     std::to_string(plan.micro_batches) + " micro-batches of " +
                         std::to_string(plan.micro_batch) + " sequences are not the global batch " +
                         "of " + std::to_string(plan.job.global_batch));
  }
  if (plan.job.sequence_length > plan.model.max_positions) {
    throw InputError(where + ": job.sequence_length",
                     "is " + std::to_string(plan.job.sequence_length) + ", but the model has " +
                         std::to_string(plan.model.max_positions) + " positions");
  }
  try {
    check(plan.shape(), make_schedule(plan.schedule, plan.shape()));
  } catch (const InputError& error) {
    throw InputError(where, error.what());
  }
}

Plan read_plan_file(const std::string& path) {
  return parse_plan(read_file(path), path);
}

Plan parse_plan(std::string_view text, const std::string& name) {
  const Node node = parse_json(text, name);
  return read_plan(Fields(node, name));
}

std::string to_json(const Plan& plan) {
  TableWriter table;
  table.set("format", "nebula-plan").set("version", 1);
  write_contract(table, plan);
  table.set("cluster", write_cluster(plan.cluster))
      .set("predicted", TableWriter()
                            .set("step_s", plan.predicted.step_s)
                            .set("bubble", plan.predicted.bubble)
                            .set("tokens_per_s", plan.predicted.tokens_per_s)
                            .set("memory_bytes", plan.predicted.memory_bytes)
                            .set("costs_source", plan.predicted.costs_source)
                            .set("reason", plan.predicted.reason)
                            .node());
  return to_json(table.node());
}

void write_plan_file(const std::string& path, const Plan& plan) {
  write_file(path, to_json(plan));
}

std::uint64_t plan_hash(const Plan& plan) {
  TableWriter table;
  write_contract(table, plan);
  // FNV-1a, 64 bits: guards against mistakes, not against attackers.
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : to_json(table.node())) {
    hash = (hash ^ std::uint8_t(c)) * 1099511628211ULL;
  }
  return hash;
}

std::string one_line(const Plan& plan) {
  std::string text =
      std::to_string(plan.stage_count()) + (plan.stage_count() == 1 ? " stage: " : " stages: ");
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    const StagePlan& stage = plan.stages[s];
    text += (s ? " | " : "") + stage.cloud + " [" + std::to_string(stage.first_layer) + "," +
            std::to_string(stage.last_layer) + ")";
  }
  text += ", " + std::to_string(plan.micro_batches) +
          (plan.micro_batches == 1 ? " micro-batch of " : " micro-batches of ") +
          std::to_string(plan.micro_batch);
  if (plan.stage_count() > 1) {
    text += ", " + std::string(to_string(plan.schedule.kind));
    for (std::size_t s = 0; s < plan.schedule.in_flight.size(); ++s) {
      text += (s ? "/" : " ") + std::to_string(plan.schedule.in_flight[s]);
    }
  }
  for (const BoundaryPlan& boundary : plan.boundaries) {
    text += ", " + boundary.forward.name + " forward, " + boundary.backward.name + " backward";
  }
  return text;
}

}  // namespace nebula
