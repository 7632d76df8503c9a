#include "traces/trace_reader.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "core/error.hpp"
#include "traces/h5_table.hpp"

namespace nebula {
namespace {

namespace fs = std::filesystem;

/// Rows that were filled in before the writer ended.
template <typename Row>
std::vector<Row> written(std::vector<Row> rows, std::int32_t Row::*first) {
  std::erase_if(rows, [&](const Row& row) { return row.*first == unwritten; });
  return rows;
}

Event checked_event(const EventRow& row, const TraceInfo& info, const std::string& path) {
  constexpr std::uint8_t no_name = 255;
  const bool has_peer = row.message != no_name;
  const bool stages_exist = row.stage >= 0 && row.stage < info.stages && row.peer < info.stages &&
                            row.peer >= (has_peer ? 0 : -1);
  if (row.kind == no_name || !stages_exist || !std::isfinite(row.start_s) ||
      !std::isfinite(row.end_s) || !(row.bytes >= 0))
    throw InputError(path, "table events has an impossible row in step " +
                               std::to_string(row.step) + ": the file is damaged");
  return from_row(row);
}

Trace read_open_trace(const H5File& file, const std::string& path) {
  Trace trace;
  trace.path = path;
  trace.info = read_info(file, path);
  trace.complete = file.read_flag(file.id(), "complete");
  const auto events = H5Table<EventRow>::read_all(file, event_schema());
  for (const EventRow& row : written(events, &EventRow::step))
    trace.events.push_back(checked_event(row, trace.info, path));
  const auto metrics = H5Table<MetricsRow>::read_all(file, metrics_schema());
  for (const MetricsRow& row : written(metrics, &MetricsRow::step))
    trace.metrics.push_back(from_row(row));
  const auto clocks = H5Table<ClockRow>::read_all(file, clock_schema());
  for (const ClockRow& row : written(clocks, &ClockRow::peer))
    trace.clocks.push_back(from_row(row));
  return trace;
}

std::vector<std::string> trace_files(const std::string& file_or_folder) {
  std::error_code error;
  if (!fs::is_directory(file_or_folder, error)) return {file_or_folder};
  std::vector<std::string> files;
  for (fs::directory_iterator entry(file_or_folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".h5") files.push_back(entry->path().string());
  if (error) throw InputError(file_or_folder, error.message());
  if (files.empty()) throw InputError(file_or_folder, "has no traces (*.h5)");
  std::sort(files.begin(), files.end());
  return files;
}

void check_set(const std::vector<Trace>& traces) {
  const Trace& first = traces.front();
  for (const Trace& trace : traces) {
    if (trace.info.plan_hash != first.info.plan_hash)
      throw InputError(trace.path, "is of another plan than " + first.path);
    if (trace.info.run != first.info.run)
      throw InputError(trace.path, "is of run " + trace.info.run + ", but " + first.path +
                                       " of run " + first.info.run);
  }
  for (int stage = 0; stage < first.info.stages; ++stage) {
    const auto of_stage = [&](const Trace& t) { return t.info.stage == stage; };
    const auto found = std::find_if(traces.begin(), traces.end(), of_stage);
    if (found == traces.end())
      throw InputError(first.path, "the trace of stage " + std::to_string(stage) + " of " +
                                       std::to_string(first.info.stages) + " is missing beside it");
    const auto again = std::find_if(found + 1, traces.end(), of_stage);
    if (again != traces.end())
      throw InputError(again->path, "is of stage " + std::to_string(stage) + " like " +
                                        found->path + "; give the traces of one run");
  }
}

/// Clock of trace `to` minus that of `from`, when one of them measured it.
struct Measured {
  double offset_s = 0;
  double error_s = std::numeric_limits<double>::infinity();
};
Measured clock_difference(const Trace& from, const Trace& to) {
  Measured best;
  const auto consider = [&best](const Trace& trace, int peer, double sign) {
    // The latest row about a peer counts: clocks drift.
    Measured latest;
    for (const ClockOffset& clock : trace.clocks)
      if (clock.peer == peer) latest = {sign * clock.offset_s, clock.error_s};
    if (latest.error_s < best.error_s) best = latest;
  };
  consider(from, to.info.stage, 1);
  consider(to, from.info.stage, -1);
  return best;
}

/// Clock of each trace minus the first one's; 0 where nothing links them.
std::vector<double> clock_offsets(std::span<const Trace> traces) {
  std::vector<Measured> known(traces.size());
  std::vector<bool> settled(traces.size(), false);
  if (!known.empty()) known[0] = {0, 0};
  // Dijkstra by summed error; the number of processes is small.
  for (std::size_t round = 0; round < traces.size(); ++round) {
    std::size_t nearest = traces.size();
    for (std::size_t i = 0; i < traces.size(); ++i)
      if (!settled[i] && std::isfinite(known[i].error_s) &&
          (nearest == traces.size() || known[i].error_s < known[nearest].error_s))
        nearest = i;
    if (nearest == traces.size()) break;
    settled[nearest] = true;
    for (std::size_t i = 0; i < traces.size(); ++i) {
      if (settled[i]) continue;
      const Measured step = clock_difference(traces[nearest], traces[i]);
      const double error = known[nearest].error_s + step.error_s;
      if (error < known[i].error_s) known[i] = {known[nearest].offset_s + step.offset_s, error};
    }
  }
  std::vector<double> offsets;
  for (const Measured& measured : known) offsets.push_back(measured.offset_s);
  return offsets;
}

}  // namespace

Trace read_trace(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) throw InputError(path, "does not exist");
  const H5Session session;
  try {
    return read_open_trace(H5File::open(path), path);
  } catch (const RunError& problem) {
    // Whatever HDF5 dislikes about a file that we only read is the file's fault.
    throw InputError("", problem.what());
  }
}

std::vector<Trace> read_traces(const std::vector<std::string>& files_or_folders) {
  std::vector<Trace> traces;
  for (const std::string& argument : files_or_folders)
    for (const std::string& path : trace_files(argument)) traces.push_back(read_trace(path));
  if (traces.empty()) throw InputError("--traces", "names no file");
  check_set(traces);
  std::sort(traces.begin(), traces.end(),
            [](const Trace& a, const Trace& b) { return a.info.stage < b.info.stage; });
  return traces;
}

Plan plan_of(std::span<const Trace> traces, const std::string& plan_file) {
  const Trace& first = traces.front();
  if (plan_file.empty()) return parse_plan(first.info.plan, first.path + ": plan");
  Plan plan = read_plan_file(plan_file);
  if (plan_hash(plan) != first.info.plan_hash)
    throw InputError(plan_file, "is not the plan that " + first.path + " is a trace of");
  return plan;
}

std::vector<double> time_shifts(std::span<const Trace> traces) {
  const std::vector<double> clocks = clock_offsets(traces);
  std::vector<double> shifts;
  for (std::size_t i = 0; i < traces.size(); ++i) {
    // Differences of nanoseconds first: a double does not hold today's date to the nanosecond.
    const std::int64_t since_first =
        traces[i].info.origin_unix_ns - traces.front().info.origin_unix_ns;
    shifts.push_back(double(since_first) * 1e-9 - clocks[i]);
  }
  const double earliest = shifts.empty() ? 0 : *std::min_element(shifts.begin(), shifts.end());
  for (double& shift : shifts) shift -= earliest;
  return shifts;
}

std::vector<Event> merge(std::span<const Trace> traces) {
  const std::vector<double> shifts = time_shifts(traces);
  std::vector<Event> events;
  for (std::size_t i = 0; i < traces.size(); ++i)
    for (Event event : traces[i].events) {
      event.start_s += shifts[i];
      event.end_s += shifts[i];
      events.push_back(event);
    }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.end_s < b.end_s; });
  return events;
}

}  // namespace nebula
