#include "core/summary.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/costs.hpp"
#include "core/error.hpp"

namespace nebula {
namespace {

// End of the update, by step, of each stage.
using UpdateEnds = std::vector<std::map<int, double>>;

UpdateEnds update_ends(const Plan& plan, std::span<const Event> events) {
  UpdateEnds ends(plan.stages.size());
  for (const Event& event : events) {
    if (event.kind == EventKind::op && event.op.kind == OpKind::update) {
      ends.at(std::size_t(event.stage))[event.step] = event.end_s;
    }
  }
  return ends;
}

// Steps that every stage has both ends of, without those that a checkpoint or evaluation stretched.
std::set<int> complete_steps(const UpdateEnds& ends, std::span<const Event> events, int skip) {
  std::set<int> steps;
  if (ends.front().empty()) return steps;
  const int first = ends.front().begin()->first + std::max(skip, 1);
  for (const auto& [step, end] : ends.front()) {
    const bool everywhere = std::all_of(ends.begin(), ends.end(), [&, k = step](const auto& stage) {
      return stage.contains(k) && stage.contains(k - 1);
    });
    if (step >= first && everywhere) steps.insert(step);
  }
  for (const Event& event : events) {
    if (event.kind == EventKind::save || event.kind == EventKind::evaluate) steps.erase(event.step);
  }
  return steps;
}

void add_op(StageSummary& stage, const Event& event) {
  switch (event.op.kind) {
    case OpKind::forward:
      stage.forward_s += event.seconds();
      break;
    case OpKind::backward:
      stage.backward_s += event.seconds();
      break;
    default:
      stage.update_s += event.seconds();
      break;
  }
}

void add_wait(StageSummary& stage, const Event& event, double first_forward_s) {
  if (event.message == MessageKind::gradient) {
    stage.wait_gradient_s += event.seconds();
  } else if (event.message != MessageKind::activation) {
    stage.drain_s += event.seconds();
  } else if (event.end_s <= first_forward_s) {
    stage.warm_up_s += event.seconds();
  } else {
    stage.wait_activation_s += event.seconds();
  }
}

void divide(StageSummary& stage, double by) {
  for (double* part : {&stage.forward_s, &stage.backward_s, &stage.update_s, &stage.codec_s,
                       &stage.prepare_s, &stage.warm_up_s, &stage.wait_activation_s,
                       &stage.wait_gradient_s, &stage.drain_s, &stage.other_s}) {
    *part /= by;
  }
}

void add_link(std::map<std::string, LinkSummary>& links, const Plan& plan, const Event& event) {
  const std::string& from = plan.stages.at(std::size_t(event.peer)).cloud;
  const std::string& to = plan.stages.at(std::size_t(event.stage)).cloud;
  if (from == to) return;
  LinkSummary& link = links[link_name(from, to)];
  link.name = link_name(from, to);
  link.bytes += event.bytes;
}

}  // namespace

StepSummary summarize(const Plan& plan, std::span<const Event> events, int skip) {
  const UpdateEnds ends = update_ends(plan, events);
  const std::set<int> steps = complete_steps(ends, events, skip);
  if (steps.empty()) throw InputError("", "the timeline holds no complete step to summarise");

  std::map<std::pair<int, int>, double> first_forward;
  for (const Event& event : events) {
    if (event.kind != EventKind::op || event.op.kind != OpKind::forward) continue;
    const auto [at, inserted] = first_forward.try_emplace({event.stage, event.step}, event.start_s);
    if (!inserted) at->second = std::min(at->second, event.start_s);
  }

  StepSummary summary;
  summary.steps = int(steps.size());
  summary.stages.resize(plan.stages.size());
  std::map<std::string, LinkSummary> links;
  for (const Event& event : events) {
    if (!steps.contains(event.step)) continue;
    StageSummary& stage = summary.stages.at(std::size_t(event.stage));
    switch (event.kind) {
      case EventKind::op:
        add_op(stage, event);
        break;
      case EventKind::wait:
        add_wait(stage, event, first_forward[{event.stage, event.step}]);
        break;
      case EventKind::encode:
      case EventKind::decode:
        stage.codec_s += event.seconds();
        break;
      case EventKind::prepare:
        stage.prepare_s += event.seconds();
        break;
      case EventKind::transfer:
        add_link(links, plan, event);
        break;
      case EventKind::save:
      case EventKind::evaluate:
        break;
    }
  }

  double total = 0;
  double busy = 0;
  for (std::size_t s = 0; s < summary.stages.size(); ++s) {
    double span = 0;
    for (const int step : steps) span += ends[s].at(step) - ends[s].at(step - 1);
    StageSummary& stage = summary.stages[s];
    stage.other_s = span - stage.busy_s() - stage.idle_s();
    total += span;
    busy += stage.busy_s();
    if (s == 0) summary.step_s = span / summary.steps;
    divide(stage, summary.steps);
  }
  summary.bubble = total > 0 ? 1 - busy / total : 0;
  for (auto& [name, link] : links) {
    link.bytes /= summary.steps;
    const auto arrow = name.find("->");
    const Link* line = plan.cluster.find_link(name.substr(0, arrow), name.substr(arrow + 2));
    if (line) link.use = link.bytes / (line->rate_bytes_per_s * summary.step_s);
    summary.links.push_back(link);
  }
  return summary;
}

}  // namespace nebula
