#include "core/step_costs.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace nebula {
namespace {

const DeviceCosts& costs_of(const Costs& costs, const StagePlan& stage) {
  const auto found = costs.devices.find(stage.device);
  if (found == costs.devices.end()) {
    throw InputError("costs", "have no device '" + stage.device + "'");
  }
  return found->second;
}

const CodecCosts& codec_costs(const DeviceCosts& device, const CodecSettings& codec) {
  const auto found = device.codecs.find(codec.name);
  if (found == device.codecs.end()) {
    throw InputError("costs", "have no codec '" + codec.name + "'; profile the device again");
  }
  return found->second;
}

StageCosts stage_costs(const Plan& plan, const StagePlan& stage, const Costs& costs) {
  const DeviceCosts& device = costs_of(costs, stage);
  const double sequences = double(plan.micro_batch) / stage.replicas;
  StageCosts result;
  result.forward_s = device.op_overhead_s;
  result.backward_s = device.op_overhead_s;
  result.prepare_s = device.step_overhead_s;
  for (int index = stage.first_layer; index < stage.last_layer; ++index) {
    const std::string kind(to_string(layer_kind(plan.model, index)));
    const auto layer = device.layers.find(kind);
    if (layer == device.layers.end()) throw InputError("costs", "have no layer '" + kind + "'");
    result.forward_s += layer->second.forward_s.at(sequences);
    result.backward_s += layer->second.backward_s.at(sequences);
    result.update_s += layer->second.update_s;
  }
  if (stage.recompute) result.backward_s += result.forward_s;
  return result;
}

// Joins stages to lines: links between clouds are shared by all that uses them, the LAN gives each
// pair of devices its own.
class Network {
 public:
  Network(const Plan& plan, const Cluster& cluster, const Costs& costs, std::vector<Line>& lines)
      : plan_(plan), cluster_(cluster), costs_(costs), lines_(lines) {}

  ChannelCosts channel(int from, int to, std::int64_t payload, int connections) {
    const std::string& a = plan_.stages[std::size_t(from)].cloud;
    const std::string& b = plan_.stages[std::size_t(to)].cloud;
    ChannelCosts result;
    result.bytes = double(framed_bytes(payload));
    result.connections = connections;
    if (a == b) {
      const Cloud* cloud = cluster_.find_cloud(a);
      if (!cloud) throw InputError("cluster", "has no cloud '" + a + "' of the plan");
      const std::string pair = std::to_string(from) + "->" + std::to_string(to);
      result.line = line(a + " lan, stage " + pair, cloud->lan_rate_bytes_per_s);
      result.latency_s = cloud->lan_latency_s;
      return result;
    }
    const LinkCosts link = link_costs(a, b);
    result.line = line(link_name(a, b), link.rate_bytes_per_s);
    result.latency_s = link.latency_s;
    if (link.window_bytes > 0 && link.latency_s > 0) {
      result.connection_bytes_per_s = link.window_bytes / (2 * link.latency_s);
    }
    return result;
  }

 private:
  int line(const std::string& name, double rate) {
    const auto found =
        std::find_if(lines_.begin(), lines_.end(), [&](const Line& l) { return l.name == name; });
    if (found != lines_.end()) return int(found - lines_.begin());
    lines_.push_back({name, rate});
    return int(lines_.size()) - 1;
  }

  // A measured link stands for what the plan assumed; a cluster that differs from the plan's is a
  // question about another link, so it wins.
  LinkCosts link_costs(const std::string& from, const std::string& to) const {
    const Link* link = cluster_.find_link(from, to);
    if (!link) throw InputError("cluster", "has no link " + link_name(from, to) + " of the plan");
    const Link* planned = plan_.cluster.find_link(from, to);
    const auto measured = costs_.links.find(link_name(from, to));
    const bool as_planned = planned && planned->rate_bytes_per_s == link->rate_bytes_per_s &&
                            planned->latency_s == link->latency_s &&
                            planned->window_bytes == link->window_bytes;
    if (measured != costs_.links.end() && as_planned) return measured->second;
    return {link->rate_bytes_per_s, link->latency_s, link->window_bytes, link->source};
  }

  const Plan& plan_;
  const Cluster& cluster_;
  const Costs& costs_;
  std::vector<Line>& lines_;
};

void add_codec(ChannelCosts& channel, const Plan& plan, const Costs& costs, int from, int to,
               const CodecSettings& codec, std::int64_t elements) {
  const StagePlan& sender = plan.stages[std::size_t(from)];
  const StagePlan& receiver = plan.stages[std::size_t(to)];
  const CodecCosts& encode = codec_costs(costs_of(costs, sender), codec);
  const CodecCosts& decode = codec_costs(costs_of(costs, receiver), codec);
  // Each replica codes its own share of the batch.
  const double sent = double(elements) / sender.replicas;
  const double received = double(elements) / receiver.replicas;
  channel.encode_s = encode.fixed_s + encode.encode_per_element_s * sent;
  channel.decode_s = decode.fixed_s + decode.decode_per_element_s * received;
}

}  // namespace

std::int64_t framed_bytes(std::int64_t payload) {
  constexpr std::int64_t record_payload = 16384;
  const std::int64_t content = payload + wire_header_bytes;
  const std::int64_t records = (content + record_payload - 1) / record_payload;
  return content + records * tls_record_bytes;
}

double StepCosts::op_seconds(int stage, OpKind kind) const {
  const StageCosts& costs = stages[std::size_t(stage)];
  switch (kind) {
    case OpKind::forward:
      return costs.forward_s;
    case OpKind::backward:
      return costs.backward_s;
    case OpKind::sum_norm:
      return costs.norm_s;
    case OpKind::update:
      return costs.update_s;
    case OpKind::tie_send:
    case OpKind::tie_receive:
    case OpKind::share_norm:
      return 0;
  }
  return 0;
}

const ChannelCosts& StepCosts::channel(const Message& message) const {
  switch (message.kind) {
    case MessageKind::activation:
      return forward[std::size_t(message.from)];
    case MessageKind::gradient:
      return backward[std::size_t(message.to)];
    case MessageKind::norm_total:
      return norm_forward[std::size_t(message.from)];
    case MessageKind::norm_partial:
      return norm_backward[std::size_t(message.to)];
    case MessageKind::tied_gradient:
      return message.from == 0 ? tied_forward : tied_backward;
  }
  return tied_forward;
}

StepCosts step_costs(const Plan& plan, const Cluster& cluster, const Costs& costs) {
  StepCosts result;
  result.shape = plan.shape();
  for (const StagePlan& stage : plan.stages) {
    result.stages.push_back(stage_costs(plan, stage, costs));
  }
  Network network(plan, cluster, costs, result.lines);
  const std::int64_t elements =
      std::int64_t{plan.micro_batch} * plan.job.sequence_length * plan.model.width;
  for (const BoundaryPlan& b : plan.boundaries) {
    auto there = network.channel(b.from, b.to, wire_bytes(b.forward, elements), b.connections);
    auto home = network.channel(b.to, b.from, wire_bytes(b.backward, elements), b.connections);
    add_codec(there, plan, costs, b.from, b.to, b.forward, elements);
    add_codec(home, plan, costs, b.to, b.from, b.backward, elements);
    result.forward.push_back(there);
    result.backward.push_back(home);
    result.norm_forward.push_back(network.channel(b.from, b.to, step_report_bytes, b.connections));
    result.norm_backward.push_back(network.channel(b.to, b.from, step_report_bytes, b.connections));
  }
  if (result.shape.tied) {
    const int last = plan.stage_count() - 1;
    const std::int64_t table = std::int64_t{plan.model.vocabulary} * plan.model.width;
    result.tied_forward = network.channel(0, last, wire_bytes(plan.tied, table), 1);
    result.tied_backward = network.channel(last, 0, wire_bytes(plan.tied, table), 1);
    add_codec(result.tied_forward, plan, costs, 0, last, plan.tied, table);
    add_codec(result.tied_backward, plan, costs, last, 0, plan.tied, table);
  }
  return result;
}

double paper_bubble(int p, int m) {
  return double(p - 1) / double(m + p - 1);
}

double paper_bubble(int p, int m, double tf, double tb, double tt) {
  const double idle = (p - 1) * (tf + tb + 2 * m * tt);
  return idle / (m * (tf + tb) + idle);
}

}  // namespace nebula
