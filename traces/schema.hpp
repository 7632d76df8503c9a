#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "traces/h5.hpp"
#include "traces/trace.hpp"

namespace nebula {

/// The file format; traces/README.md describes it field by field. A change that old readers would
/// misread raises the version.
constexpr const char* trace_format = "nebula-trace";
constexpr int trace_version = 1;

/// First column of a row that a killed writer had no time to fill.
constexpr std::int32_t unwritten = std::numeric_limits<std::int32_t>::min();

/// Rows of the three tables as they stand in memory.
struct EventRow {
  std::int32_t step = unwritten;
  std::int32_t stage = 0;
  std::uint8_t kind = 0;
  std::uint8_t op = 0;
  std::uint8_t message = 0;
  std::int32_t peer = 0;
  std::int32_t micro_batch = 0;
  std::int32_t chunk = 0;
  double start_s = 0;
  double end_s = 0;
  double bytes = 0;
};

struct MetricsRow {
  std::int32_t step = unwritten;
  double loss = 0;
  double grad_norm = 0;
  double learning_rate = 0;
  double tokens = 0;
  double step_s = 0;
  double peak_bytes = 0;
};

struct ClockRow {
  std::int32_t peer = unwritten;
  double offset_s = 0;
  double error_s = 0;
};

EventRow to_row(const Event& event);
Event from_row(const EventRow& row);
MetricsRow to_row(const StepMetrics& metrics);
StepMetrics from_row(const MetricsRow& row);
ClockRow to_row(const ClockOffset& offset);
ClockOffset from_row(const ClockRow& row);

/// A table's name, its row as HDF5 sees it in memory, and each column's unit ("" for counts and
/// names). Enum columns have the names of core/timeline.hpp and core/schedule.hpp; HDF5 matches
/// enums by name, so their order in core is free to change.
struct TableSchema {
  std::string name;
  H5Id row;
  std::vector<std::pair<std::string, std::string>> units;
};
TableSchema event_schema();
TableSchema metrics_schema();
TableSchema clock_schema();

void write_info(const H5File& file, const TraceInfo& info);
/// Refuses foreign formats and other versions.
TraceInfo read_info(const H5File& file, const std::string& path);

}  // namespace nebula
