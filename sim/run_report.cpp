#include "sim/run_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/fields.hpp"
#include "core/step_costs.hpp"
#include "core/units.hpp"

namespace nebula {
namespace {

struct Part {
  const char* name;
  double StageSummary::*seconds;
};

constexpr Part parts[] = {
    {"forward", &StageSummary::forward_s},
    {"backward", &StageSummary::backward_s},
    {"update", &StageSummary::update_s},
    {"codec", &StageSummary::codec_s},
    {"prepare", &StageSummary::prepare_s},
    {"warm_up", &StageSummary::warm_up_s},
    {"wait_activation", &StageSummary::wait_activation_s},
    {"wait_gradient", &StageSummary::wait_gradient_s},
    {"drain", &StageSummary::drain_s},
    {"other", &StageSummary::other_s},
};

std::string percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f %%", 100 * share);
  return text;
}

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.insert(0, width - text.size(), ' ');
  return text;
}

double transfer_seconds(const ChannelCosts& channel, const std::vector<Line>& lines) {
  double seconds = channel.encode_s + channel.latency_s + channel.decode_s;
  if (channel.line < 0) return seconds;
  double rate = lines[std::size_t(channel.line)].rate_bytes_per_s;
  if (channel.connection_bytes_per_s > 0) {
    rate = std::min(rate, channel.connections * channel.connection_bytes_per_s);
  }
  return seconds + channel.bytes / rate;
}

// Formula (2) knows one stage and one boundary: it gets the mean of each.
double unoverlapped_bubble(const StepCosts& costs) {
  const int p = costs.shape.stages;
  double tf = 0;
  double tb = 0;
  double tt = 0;
  for (const StageCosts& stage : costs.stages) {
    tf += stage.forward_s / p;
    tb += stage.backward_s / p;
  }
  for (const auto* channels : {&costs.forward, &costs.backward}) {
    for (const ChannelCosts& channel : *channels) {
      tt += transfer_seconds(channel, costs.lines) / (2 * (p - 1));
    }
  }
  return paper_bubble(p, costs.shape.micro_batches, tf, tb, tt);
}

// A row a stage; parts that no stage has are left out.
std::string stage_table(const RunReport& report) {
  std::vector<Part> used;
  for (const Part& part : parts) {
    const auto& stages = report.summary.stages;
    const bool any = std::any_of(stages.begin(), stages.end(), [&](const StageSummary& stage) {
      return std::abs(stage.*part.seconds) > 1e-9 * report.summary.step_s;
    });
    if (any) used.push_back(part);
  }
  std::string text = "Where the seconds of a step went:\nstage";
  for (const Part& part : used) text += padded(part.name, 17);
  text += padded("sum", 12) + padded("memory", 12) + '\n';
  for (std::size_t s = 0; s < report.summary.stages.size(); ++s) {
    const StageSummary& stage = report.summary.stages[s];
    text += padded(std::to_string(s), 5);
    for (const Part& part : used) text += padded(format_seconds(stage.*part.seconds), 17);
    text += padded(format_seconds(stage.busy_s() + stage.idle_s()), 12);
    text += padded(format_bytes(report.memory[s].total_bytes()), 12) + '\n';
  }
  return text;
}

std::string link_lines(const RunReport& report) {
  std::string text;
  for (const LinkSummary& link : report.summary.links) {
    text += "Link " + link.name + ": " + format_bytes(link.bytes) + " a step, " +
            percent(link.use) + " of the line\n";
  }
  return text;
}

Node stage_node(const StageSummary& stage, const StageMemory& memory) {
  TableWriter table;
  for (const Part& part : parts) table.set(std::string(part.name) + "_s", stage.*part.seconds);
  table.set("memory_bytes", memory.total_bytes());
  return table.node();
}

}  // namespace

RunReport make_report(const Plan& plan, const PlanSimulation& simulated, const Costs& costs) {
  RunReport report;
  report.plan = plan;
  report.summary = simulated.summary;
  report.tokens_per_s = plan.job.tokens_per_step() / simulated.summary.step_s;
  report.memory = plan_memory(plan, costs);
  report.costs_source = costs.source;
  if (plan.stage_count() > 1) {
    report.bubble_without_transfers = paper_bubble(plan.stage_count(), plan.micro_batches);
    report.bubble_unoverlapped = unoverlapped_bubble(simulated.costs);
  }
  return report;
}

std::string to_text(const RunReport& report) {
  char tokens[32];
  std::snprintf(tokens, sizeof tokens, "%.0f", report.tokens_per_s);
  return one_line(report.plan) + "\nStep: " + format_seconds(report.summary.step_s) + ", " +
         tokens + " tokens/s (costs: " + report.costs_source +
         ")\nBubble: " + percent(report.summary.bubble) +
         " simulated; the paper's formulas: " + percent(report.bubble_without_transfers) +
         " without transfers (1), " + percent(report.bubble_unoverlapped) +
         " with unoverlapped transfers (2)\n" + stage_table(report) + link_lines(report);
}

Node to_node(const RunReport& report) {
  NodeList stages;
  for (std::size_t s = 0; s < report.summary.stages.size(); ++s) {
    stages.push_back(stage_node(report.summary.stages[s], report.memory[s]));
  }
  NodeList links;
  for (const LinkSummary& link : report.summary.links) {
    links.push_back(
        TableWriter().set("name", link.name).set("bytes", link.bytes).set("use", link.use).node());
  }
  return TableWriter()
      .set("plan", one_line(report.plan))
      .set("step_s", report.summary.step_s)
      .set("tokens_per_s", report.tokens_per_s)
      .set("bubble", report.summary.bubble)
      .set("paper_bubble_1", report.bubble_without_transfers)
      .set("paper_bubble_2", report.bubble_unoverlapped)
      .set("stages", Node{std::move(stages), 0})
      .set("links", Node{std::move(links), 0})
      .set("costs_source", report.costs_source)
      .node();
}

}  // namespace nebula
