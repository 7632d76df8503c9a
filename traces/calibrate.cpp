#include "traces/calibrate.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/step_costs.hpp"
#include "traces/activities.hpp"
#include "traces/least_squares.hpp"
#include "traces/link_fit.hpp"
#include "traces/step_overhead.hpp"

namespace nebula {
namespace {

/// Typical seconds of each activity.
using Measured = std::map<Activity, double>;

Measured measure(std::span<const Event> events) {
  Measured result;
  for (auto& [activity, seconds] : durations(events)) result[activity] = typical(seconds);
  return result;
}

/// Measured seconds of a stage's op; 0 when it never ran.
double op_seconds(const Measured& measured, int stage, OpKind op) {
  const auto found = measured.find({EventKind::op, stage, op, MessageKind::activation, -1});
  return found == measured.end() ? 0 : found->second;
}

std::vector<int> stages_on(const Plan& plan, const std::string& device) {
  std::vector<int> stages;
  for (int s = 0; s < plan.stage_count(); ++s)
    if (plan.stages[std::size_t(s)].device == device) stages.push_back(s);
  return stages;
}

/// One quantity of the layers that is fitted to one time of the stages.
struct Pass {
  const char* what;
  void (*scale)(LayerCosts&, double factor);
  /// The ops whose seconds it makes up.
  std::vector<OpKind> ops;
};

std::vector<Pass> passes() {
  using enum OpKind;
  // In this order: the backward of a stage that recomputes contains its forward.
  return {
      {"forward", [](LayerCosts& l, double f) { l.forward_s = l.forward_s.scaled(f); }, {forward}},
      {"backward",
       [](LayerCosts& l, double f) { l.backward_s = l.backward_s.scaled(f); },
       {backward}},
      {"update",
       [](LayerCosts& l, double f) { l.update_s *= f; },
       {tie_send, tie_receive, sum_norm, share_norm, update}},
  };
}

double measured_seconds(const Measured& measured, const Pass& pass, int stage) {
  double seconds = 0;
  for (const OpKind op : pass.ops) seconds += op_seconds(measured, stage, op);
  return seconds;
}

double predicted_seconds(const StepCosts& costs, const Pass& pass, int stage) {
  double seconds = 0;
  for (const OpKind op : pass.ops) seconds += costs.op_seconds(stage, op);
  return seconds;
}

/// What the stages' times consist of is asked of step_costs itself, by leaving all kinds of layer
/// but one out: so the fit can't differ from how the costs are used.
void fit_layers(const Plan& plan, const Measured& measured, const std::string& device,
                const Pass& pass, Costs& costs) {
  auto& layers = costs.devices.at(device).layers;
  const auto seconds_with_only = [&](const std::string& kept) {
    Costs probe = costs;
    for (auto& [kind, layer] : probe.devices.at(device).layers)
      if (kind != kept) pass.scale(layer, 0);
    return step_costs(plan, plan.cluster, probe);
  };
  std::vector<std::string> kinds;
  std::vector<StepCosts> alone;
  for (const auto& [kind, layer] : layers) {
    kinds.push_back(kind);
    alone.push_back(seconds_with_only(kind));
  }
  const StepCosts fixed = seconds_with_only("");

  std::vector<std::vector<double>> parts;
  std::vector<double> sums;
  for (const int stage : stages_on(plan, device)) {
    const double base_s = predicted_seconds(fixed, pass, stage);
    parts.emplace_back();
    for (const StepCosts& one : alone)
      parts.back().push_back(predicted_seconds(one, pass, stage) - base_s);
    sums.push_back(measured_seconds(measured, pass, stage) - base_s);
  }
  const std::vector<double> factors = shrunk_factors(parts, sums);
  for (std::size_t k = 0; k < factors.size(); ++k) pass.scale(layers.at(kinds[k]), factors[k]);
}

/// The overhead of an op can't be told from its layers at one micro-batch size. It is kept, unless
/// the base has more of it than fits.
void cap_op_overhead(const Plan& plan, const Measured& measured, const std::string& device,
                     Costs& costs) {
  double& overhead_s = costs.devices.at(device).op_overhead_s;
  for (const int stage : stages_on(plan, device))
    overhead_s = std::min({overhead_s, op_seconds(measured, stage, OpKind::forward) / 2,
                           op_seconds(measured, stage, OpKind::backward) / 2});
}

/// A codec's work on one tensor.
struct Coding {
  double elements = 0;
  double seconds = 0;
};
struct CodecUse {
  std::vector<Coding> encodings;
  std::vector<Coding> decodings;
};

std::string codec_of(const Plan& plan, const Activity& activity) {
  const std::size_t boundary = std::size_t(std::min(activity.stage, activity.peer));
  switch (activity.message) {
    case MessageKind::activation:
      return plan.boundaries.at(boundary).forward.name;
    case MessageKind::gradient:
      return plan.boundaries.at(boundary).backward.name;
    case MessageKind::tied_gradient:
      return plan.tied.name;
    default:
      return "";
  }
}

/// Codings by codec. How many elements each has follows from costs of one second an element.
std::map<std::string, CodecUse> codec_uses(const Plan& plan, const Measured& measured,
                                           const std::string& device, Costs probe) {
  for (auto& [kind, costs] : probe.devices)
    for (auto& [name, codec] : costs.codecs) codec = {0, 1, 1};
  const StepCosts elements = step_costs(plan, plan.cluster, probe);
  std::map<std::string, CodecUse> uses;
  for (const auto& [activity, seconds] : measured) {
    const bool encodes = activity.kind == EventKind::encode;
    if (!encodes && activity.kind != EventKind::decode) continue;
    if (plan.stages[std::size_t(activity.stage)].device != device) continue;
    const std::string name = codec_of(plan, activity);
    if (name.empty()) continue;
    const int from = encodes ? activity.stage : activity.peer;
    const int to = encodes ? activity.peer : activity.stage;
    const ChannelCosts& channel = elements.channel({activity.message, from, to, 0, 0});
    if (encodes)
      uses[name].encodings.push_back({channel.encode_s, seconds});
    else
      uses[name].decodings.push_back({channel.decode_s, seconds});
  }
  return uses;
}

/// Seconds an element, by least squares of the relative errors beside the fixed seconds.
std::optional<double> seconds_per_element(const std::vector<Coding>& codings, double fixed_s) {
  double above = 0;
  double below = 0;
  for (const Coding& coding : codings) {
    if (coding.elements <= 0 || coding.seconds <= 0) continue;
    const double slope = coding.elements / coding.seconds;
    above += slope * (coding.seconds - fixed_s) / coding.seconds;
    below += slope * slope;
  }
  if (below <= 0) return std::nullopt;
  return above / below;
}

void fit_codecs(const Plan& plan, const Measured& measured, const std::string& device,
                Costs& costs) {
  for (const auto& [name, use] : codec_uses(plan, measured, device, costs)) {
    CodecCosts& codec = costs.devices.at(device).codecs[name];
    // As with the op's overhead: kept as far as it fits.
    for (const auto* codings : {&use.encodings, &use.decodings})
      for (const Coding& coding : *codings)
        codec.fixed_s = std::min(codec.fixed_s, coding.seconds / 2);
    codec.encode_per_element_s =
        seconds_per_element(use.encodings, codec.fixed_s).value_or(codec.encode_per_element_s);
    codec.decode_per_element_s =
        seconds_per_element(use.decodings, codec.fixed_s).value_or(codec.decode_per_element_s);
  }
}

void fit_device(const Plan& plan, std::span<const Event> events, const Measured& measured,
                const std::string& device, Costs& costs) {
  cap_op_overhead(plan, measured, device, costs);
  for (const Pass& pass : passes()) fit_layers(plan, measured, device, pass, costs);
  fit_codecs(plan, measured, device, costs);
  std::vector<double> overheads;
  for (const int stage : stages_on(plan, device))
    if (const auto seconds = step_overhead(events, stage)) overheads.push_back(*seconds);
  double sum = 0;
  for (const double seconds : overheads) sum += seconds;
  if (!overheads.empty()) costs.devices.at(device).step_overhead_s = sum / double(overheads.size());
  costs.devices.at(device).source = "calibration";
}

/// Most connections of any boundary over the directed link.
int connections_over(const Plan& plan, const Link& link) {
  int most = 1;
  for (const BoundaryPlan& boundary : plan.boundaries) {
    const std::string& below = plan.stages[std::size_t(boundary.from)].cloud;
    const std::string& above = plan.stages[std::size_t(boundary.to)].cloud;
    if ((below == link.from && above == link.to) || (below == link.to && above == link.from))
      most = std::max(most, boundary.connections);
  }
  return most;
}

std::vector<Event> transfers_over(const Plan& plan, std::span<const Event> events,
                                  const Link& link) {
  std::vector<Event> transfers;
  for (const Event& event : events)
    if (event.kind == EventKind::transfer &&
        plan.stages.at(std::size_t(event.peer)).cloud == link.from &&
        plan.stages.at(std::size_t(event.stage)).cloud == link.to)
      transfers.push_back(event);
  return transfers;
}

void fit_link_costs(const Plan& plan, const Link& link, const LinkFit& fit, Costs& costs) {
  LinkCosts& found =
      costs.links
          .try_emplace(link_name(link.from, link.to),
                       LinkCosts{link.rate_bytes_per_s, link.latency_s, link.window_bytes, ""})
          .first->second;
  found.rate_bytes_per_s = fit.rate_bytes_per_s;
  found.latency_s = fit.latency_s;
  // A window that would not have let the measured rate through was assumed too small.
  if (found.window_bytes > 0)
    found.window_bytes = std::max(found.window_bytes, found.rate_bytes_per_s * 2 * found.latency_s /
                                                          connections_over(plan, link));
  found.source = "calibration";
}

void fit_links(const Plan& plan, std::span<const Event> events, Costs& costs,
               std::vector<Residual>& residuals) {
  // Where a direction does not tell its latency the other one does: clocks are compared over the
  // same line under the assumption that both take equally long.
  std::map<std::string, double> told;
  for (const bool again : {false, true})
    for (const Link& link : plan.cluster.links) {
      const std::string name = link_name(link.from, link.to);
      const auto base = costs.links.find(name);
      double assumed_s = base == costs.links.end() ? link.latency_s : base->second.latency_s;
      if (const auto back = told.find(link_name(link.to, link.from)); back != told.end())
        assumed_s = back->second;
      const auto fit = fit_link(transfers_over(plan, events, link), assumed_s);
      if (!fit) continue;
      if (fit->latency_told) told[name] = fit->latency_s;
      if (!again) continue;
      fit_link_costs(plan, link, *fit, costs);
      residuals.push_back({name, fit->predicted_s, fit->measured_s});
    }
}

/// Every op and coding that was measured beside what the new costs say.
std::vector<Residual> stage_residuals(const Plan& plan, const Measured& measured,
                                      const Costs& costs) {
  const StepCosts predicted = step_costs(plan, plan.cluster, costs);
  std::vector<Residual> residuals;
  for (int stage = 0; stage < plan.stage_count(); ++stage)
    for (const Pass& pass : passes()) {
      const double measured_s = measured_seconds(measured, pass, stage);
      if (measured_s > 0)
        residuals.push_back({std::string(pass.what) + " of stage " + std::to_string(stage),
                             predicted_seconds(predicted, pass, stage), measured_s});
    }
  for (const auto& [activity, measured_s] : measured) {
    if (activity.kind != EventKind::encode && activity.kind != EventKind::decode) continue;
    if (codec_of(plan, activity).empty()) continue;
    const bool encodes = activity.kind == EventKind::encode;
    const int from = encodes ? activity.stage : activity.peer;
    const int to = encodes ? activity.peer : activity.stage;
    const ChannelCosts& channel = predicted.channel({activity.message, from, to, 0, 0});
    residuals.push_back(
        {to_string(activity), encodes ? channel.encode_s : channel.decode_s, measured_s});
  }
  return residuals;
}

std::vector<Event> enough_events(const Plan& plan, std::span<const Event> events,
                                 const CalibrationSettings& settings) {
  std::vector<Event> kept = after_warm_up(events, settings.warm_up_steps);
  for (int stage = 0; stage < plan.stage_count(); ++stage) {
    const auto updates = std::count_if(kept.begin(), kept.end(), [&](const Event& e) {
      return e.stage == stage && e.kind == EventKind::op && e.op.kind == OpKind::update;
    });
    if (updates < settings.least_steps)
      throw InputError("traces",
                       "stage " + std::to_string(stage) + " has " + std::to_string(updates) +
                           " steps after the first " + std::to_string(settings.warm_up_steps) +
                           ", a calibration needs " + std::to_string(settings.least_steps));
  }
  return kept;
}

}  // namespace

Costs calibrate(const Plan& plan, std::span<const Event> events, const Costs& base,
                const CalibrationSettings& settings) {
  check_costs(base, plan.cluster, plan.model, plan.job, "base costs");
  const std::vector<Event> kept = enough_events(plan, events, settings);
  const Measured measured = measure(kept);

  Costs costs = base;
  costs.source = "calibration";
  std::vector<std::string> devices;
  for (const StagePlan& stage : plan.stages)
    if (std::find(devices.begin(), devices.end(), stage.device) == devices.end())
      devices.push_back(stage.device);
  for (const std::string& device : devices) fit_device(plan, kept, measured, device, costs);

  std::vector<Residual> links;
  fit_links(plan, kept, costs, links);
  costs.residuals = stage_residuals(plan, measured, costs);
  costs.residuals.insert(costs.residuals.end(), links.begin(), links.end());
  return costs;
}

}  // namespace nebula
