#include "traces/chrome_trace.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/error.hpp"

namespace nebula {
namespace {

enum Row { compute_row = 0, codec_row = 1, wait_row = 2, first_line_row = 3 };

/// Row of what a stage receives from a peer: activations come from below, gradients from above,
/// so a peer is a direction.
int row_of(const Event& event) {
  switch (event.kind) {
    case EventKind::encode:
    case EventKind::decode:
      return codec_row;
    case EventKind::wait:
      return wait_row;
    case EventKind::transfer:
      return first_line_row + std::max(event.peer, 0);
    default:
      return compute_row;
  }
}

std::string row_name(int row) {
  switch (row) {
    case compute_row:
      return "compute";
    case codec_row:
      return "codec";
    case wait_row:
      return "waiting";
    default:
      return "from stage " + std::to_string(row - first_line_row);
  }
}

std::string name_of(const Event& event) {
  std::string name;
  switch (event.kind) {
    case EventKind::op:
      return to_string(event.op);
    case EventKind::transfer:
      name = to_string(event.message);
      break;
    case EventKind::wait:
      name = "wait for " + std::string(to_string(event.message));
      break;
    case EventKind::encode:
    case EventKind::decode:
      name = std::string(to_string(event.kind)) + " " + std::string(to_string(event.message));
      break;
    default:
      return std::string(to_string(event.kind));
  }
  return event.micro_batch < 0 ? name : name + " " + std::to_string(event.micro_batch);
}

/// Events one after the other, each on its own line of the file.
class ChromeFile {
 public:
  explicit ChromeFile(const std::string& path) : path_(path), out_(path, std::ios::trunc) {
    out_ << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
    check();
  }

  void name_process(int stage, const std::string& name) {
    meta("process_name", stage, 0, {{"name", name}});
    meta("process_sort_index", stage, 0, {{"sort_index", stage}});
  }
  void name_row(int stage, int row) {
    meta("thread_name", stage, row, {{"name", row_name(row)}});
    meta("thread_sort_index", stage, row, {{"sort_index", row}});
  }

  void complete(const Event& event, double shown_from_s) {
    nlohmann::ordered_json args{{"step", event.step}};
    if (event.kind == EventKind::transfer) {
      args["bytes"] = event.bytes;
      args["under_way_us"] = event.seconds() * 1e6;
    }
    separate();
    // Fixed notation: nanoseconds of an hour-long run need more than the usual six digits.
    char times[96];
    std::snprintf(times, sizeof times, "\"ts\":%.3f,\"dur\":%.3f", shown_from_s * 1e6,
                  std::max(event.end_s - shown_from_s, 0.0) * 1e6);
    out_ << "{\"ph\":\"X\",\"pid\":" << event.stage << ",\"tid\":" << row_of(event)
         << ",\"name\":" << nlohmann::json(name_of(event)).dump()
         << ",\"cat\":" << nlohmann::json(to_string(event.kind)).dump() << ',' << times
         << ",\"args\":" << args.dump() << '}';
  }

  void finish() {
    out_ << "\n]}\n";
    out_.close();
    check();
  }

 private:
  void meta(const char* what, int stage, int row, const nlohmann::ordered_json& args) {
    separate();
    out_ << nlohmann::ordered_json{
        {"ph", "M"}, {"pid", stage}, {"tid", row}, {"name", what}, {"args", args}};
  }
  void separate() { out_ << (std::exchange(first_, false) ? "\n" : ",\n"); }
  void check() {
    if (!out_) throw RunError(path_ + ": can't be written");
  }

  std::string path_;
  std::ofstream out_;
  bool first_ = true;
};

}  // namespace

void write_chrome_trace(const std::string& path, std::span<const Event> events, const Plan& plan) {
  std::vector<const Event*> ordered;
  for (const Event& event : events) ordered.push_back(&event);
  std::stable_sort(ordered.begin(), ordered.end(),
                   [](const Event* a, const Event* b) { return a->end_s < b->end_s; });

  ChromeFile file(path);
  for (int stage = 0; stage < plan.stage_count(); ++stage)
    file.name_process(stage, "stage " + std::to_string(stage) + " (" +
                                 plan.stages[std::size_t(stage)].cloud + ")");
  // Last arrival of each row of a line; a row is named when it is first seen.
  std::map<std::pair<int, int>, double> last_arrival;
  for (const Event* event : ordered) {
    const int row = row_of(*event);
    const auto [last, is_new] = last_arrival.try_emplace({event->stage, row}, event->start_s);
    if (is_new) file.name_row(event->stage, row);
    double from_s = event->start_s;
    if (row >= first_line_row) from_s = std::max(from_s, std::exchange(last->second, event->end_s));
    file.complete(*event, from_s);
  }
  file.finish();
}

}  // namespace nebula
