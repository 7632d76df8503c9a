#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/timeline.hpp"
#include "traces/trace.hpp"

namespace nebula {

struct TraceWriterOptions {
  /// Longest time that a recorded event stays in this process only.
  double flush_s = 2;
  /// Events that HDF5 stores and rewrites together.
  std::size_t chunk_rows = 1024;
  std::size_t grow_bytes = std::size_t{1} << 20;
};

/// Writes a trace file. record() only appends to a buffer under a lock, so any thread may call it
/// in the middle of its work; one background thread does everything with the file. When the disk
/// fails the run goes on without a trace, and close() says so.
class TraceWriter final : public EventSink {
 public:
  /// Creates or replaces the file; throws RunError when it can't.
  TraceWriter(const std::string& path, const TraceInfo& info, TraceWriterOptions options = {});
  /// Closes; a failure is only in failure().
  ~TraceWriter() override;
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  void record(const Event& event) override;
  void record_metrics(const StepMetrics& metrics);
  /// The latest about a peer counts.
  void record_clock(const ClockOffset& offset);

  /// Writes what is left, marks the file complete and closes it. Throws RunError when anything
  /// was lost. Nothing may be recorded after it; closing twice does nothing.
  void close();
  /// What went wrong so far.
  std::optional<std::string> failure() const;

 private:
  struct Batch {
    std::vector<Event> events;
    std::vector<StepMetrics> metrics;
    std::vector<ClockOffset> clocks;
  };
  class File;

  void run();
  void write(const Batch& batch, bool last);
  void stop();

  const TraceWriterOptions options_;
  std::unique_ptr<File> file_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  Batch pending_;
  bool stopping_ = false;
  std::optional<std::string> failure_;
  std::thread thread_;
};

}  // namespace nebula
