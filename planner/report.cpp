#include "planner/report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "core/units.hpp"

namespace nebula {
namespace {

std::string number(const char* format, double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string stages(const Plan& plan) {
  std::string text;
  for (const StagePlan& stage : plan.stages) {
    text += (text.empty() ? "" : " | ") + stage.cloud + " " + std::to_string(stage.first_layer) +
            "-" + std::to_string(stage.last_layer - 1);
  }
  return text;
}

std::string schedule(const Plan& plan) {
  if (plan.stage_count() == 1) return "-";
  std::string text(to_string(plan.schedule.kind));
  for (std::size_t s = 0; s < plan.schedule.in_flight.size(); ++s) {
    text += (s ? "/" : " ") + std::to_string(plan.schedule.in_flight[s]);
  }
  return text;
}

std::string codecs_of(const Plan& plan) {
  if (plan.boundaries.empty()) return "-";
  return plan.boundaries.front().forward.name + " / " + plan.boundaries.front().backward.name;
}

}  // namespace

std::string table(const SearchResult& result) {
  std::vector<std::vector<std::string>> rows = {{"step", "tokens/s", "bubble", "layers",
                                                 "micro-batches", "schedule", "codec there / back",
                                                 "peak memory"}};
  for (const Ranked& ranked : result.best) {
    const Plan& plan = ranked.plan;
    const auto& memory = plan.predicted.memory_bytes;
    rows.push_back({format_seconds(ranked.step_s), number("%.0f", plan.predicted.tokens_per_s),
                    number("%.1f %%", 100 * plan.predicted.bubble), stages(plan),
                    std::to_string(plan.micro_batches) + " of " + std::to_string(plan.micro_batch),
                    schedule(plan), codecs_of(plan),
                    format_bytes(*std::max_element(memory.begin(), memory.end()))});
  }
  std::vector<std::size_t> widths(rows.front().size(), 0);
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      text += row[c];
      if (c + 1 < row.size()) text += std::string(widths[c] + 2 - row[c].size(), ' ');
    }
    text += '\n';
  }
  return text;
}

Node to_node(const SearchResult& result) {
  NodeList best;
  for (const Ranked& ranked : result.best) {
    best.push_back(TableWriter()
                       .set("step_s", ranked.step_s)
                       .set("tokens_per_s", ranked.plan.predicted.tokens_per_s)
                       .set("bubble", ranked.plan.predicted.bubble)
                       .set("memory_bytes", ranked.plan.predicted.memory_bytes)
                       .set("plan", one_line(ranked.plan))
                       .node());
  }
  const Plan& winner = result.best.front().plan;
  return TableWriter()
      .set("reason", winner.predicted.reason)
      .set("costs_source", winner.predicted.costs_source)
      .set("candidates", std::int64_t(result.candidates))
      .set("too_large", std::int64_t(result.too_large))
      .set("simulated", std::int64_t(result.simulated))
      .set("search_s", result.seconds)
      .set("best", Node{std::move(best), 0})
      .node();
}

}  // namespace nebula
