#include "traces/trace_writer.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "core/error.hpp"
#include "traces/h5_table.hpp"

namespace nebula {
namespace {

template <typename Value>
auto to_rows(const std::vector<Value>& values) {
  std::vector<decltype(to_row(std::declval<Value>()))> rows;
  rows.reserve(values.size());
  for (const Value& value : values) rows.push_back(to_row(value));
  return rows;
}

/// Metrics and clocks are few: small chunks keep the file small.
std::size_t few(std::size_t chunk_rows) {
  return chunk_rows / 8 + 1;
}

}  // namespace

/// The open file; only touched with an H5Session held.
class TraceWriter::File {
 public:
  File(const std::string& path, const TraceInfo& info, const TraceWriterOptions& options)
      : file_(H5File::create(path, options.grow_bytes)),
        events_(H5Table<EventRow>::create(file_, event_schema(), options.chunk_rows)),
        metrics_(H5Table<MetricsRow>::create(file_, metrics_schema(), few(options.chunk_rows))),
        clocks_(H5Table<ClockRow>::create(file_, clock_schema(), few(options.chunk_rows))) {
    write_info(file_, info);
    file_.write_flag(file_.id(), "complete", false);
    file_.flush();
  }

  void append(const Batch& batch) {
    events_.append(file_, to_rows(batch.events));
    metrics_.append(file_, to_rows(batch.metrics));
    clocks_.append(file_, to_rows(batch.clocks));
    file_.flush();
  }

  void finish() {
    file_.write_flag(file_.id(), "complete", true);
    file_.flush();
  }

  /// What can't be written can't be closed either.
  void abandon() {
    events_.abandon();
    metrics_.abandon();
    clocks_.abandon();
    file_.abandon();
  }

 private:
  H5File file_;
  H5Table<EventRow> events_;
  H5Table<MetricsRow> metrics_;
  H5Table<ClockRow> clocks_;
};

TraceWriter::TraceWriter(const std::string& path, const TraceInfo& info, TraceWriterOptions options)
    : options_(options) {
  {
    const H5Session session;
    file_ = std::make_unique<File>(path, info, options_);
  }
  thread_ = std::thread([this] { run(); });
}

TraceWriter::~TraceWriter() {
  stop();
}

void TraceWriter::record(const Event& event) {
  const std::lock_guard lock(mutex_);
  if (!failure_) pending_.events.push_back(event);
}

void TraceWriter::record_metrics(const StepMetrics& metrics) {
  const std::lock_guard lock(mutex_);
  if (!failure_) pending_.metrics.push_back(metrics);
}

void TraceWriter::record_clock(const ClockOffset& offset) {
  const std::lock_guard lock(mutex_);
  if (!failure_) pending_.clocks.push_back(offset);
}

void TraceWriter::close() {
  stop();
  if (const auto problem = failure()) throw RunError(*problem);
}

std::optional<std::string> TraceWriter::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void TraceWriter::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void TraceWriter::run() {
  for (bool last = false; !last;) {
    Batch batch;
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock,
                     std::chrono::duration<double>(std::clamp(options_.flush_s, 0.001, 3600.0)),
                     [this] { return stopping_; });
      last = stopping_;
      batch = std::exchange(pending_, {});
    }
    write(batch, last);
  }
}

void TraceWriter::write(const Batch& batch, bool last) {
  const H5Session session;
  try {
    if (file_) file_->append(batch);
    if (file_ && last) file_->finish();
  } catch (const std::exception& error) {
    file_->abandon();
    const std::lock_guard lock(mutex_);
    failure_ = std::string(error.what()) + " (the trace ends here)";
    pending_ = {};
    last = true;
  }
  // Also after a failure: no point in trying the same file again.
  if (last) file_.reset();
}

}  // namespace nebula
