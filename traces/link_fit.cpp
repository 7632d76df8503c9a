#include "traces/link_fit.hpp"

#include <algorithm>
#include <limits>

#include "traces/activities.hpp"

namespace nebula {
namespace {

struct Frame {
  double sent_s = 0;
  double arrived_s = 0;
  double bytes = 0;
  /// Latest arrival among the frames sent before.
  double line_free_s = -std::numeric_limits<double>::infinity();
};

std::vector<Frame> frames_in_order(std::vector<Event> transfers) {
  std::stable_sort(transfers.begin(), transfers.end(),
                   [](const Event& a, const Event& b) { return a.start_s < b.start_s; });
  std::vector<Frame> frames;
  Frame frame;
  for (const Event& event : transfers) {
    frame.sent_s = event.start_s;
    frame.arrived_s = event.end_s;
    frame.bytes = event.bytes;
    frames.push_back(frame);
    frame.line_free_s = std::max(frame.line_free_s, event.end_s);
  }
  return frames;
}

/// Median rate at which large frames were served.
double rate_of(const std::vector<Frame>& frames, double large_bytes, double latency_s) {
  std::vector<double> rates;
  for (const Frame& frame : frames) {
    const double service_s =
        frame.arrived_s - std::max(frame.line_free_s, frame.sent_s + latency_s);
    if (frame.bytes >= large_bytes && service_s > 0) rates.push_back(frame.bytes / service_s);
  }
  return rates.empty() ? 0 : median(rates);
}

/// Median seconds of the large frames, of the frames as they are and as the model replays them.
void replay(const std::vector<Frame>& frames, double large_bytes, LinkFit& fit) {
  std::vector<double> predicted;
  std::vector<double> measured;
  double free_s = -std::numeric_limits<double>::infinity();
  for (const Frame& frame : frames) {
    free_s = std::max(free_s, frame.sent_s + fit.latency_s) + frame.bytes / fit.rate_bytes_per_s;
    if (frame.bytes < large_bytes) continue;
    predicted.push_back(free_s - frame.sent_s);
    measured.push_back(frame.arrived_s - frame.sent_s);
  }
  fit.predicted_s = median(predicted);
  fit.measured_s = median(measured);
}

/// Lowest decile of what the probes took beyond being sent.
double latency_of(const std::vector<Frame>& probes, double rate_bytes_per_s) {
  std::vector<double> latencies;
  for (const Frame& frame : probes) {
    const double sending_s = rate_bytes_per_s > 0 ? frame.bytes / rate_bytes_per_s : 0.0;
    latencies.push_back(frame.arrived_s - frame.sent_s - sending_s);
  }
  return std::max(0.0, quantile(latencies, 0.1));
}

/// The assumption, unless a message was quicker: then half of what that took.
double possible_latency(const std::vector<Frame>& frames, double assumed_s) {
  double shortest_s = std::numeric_limits<double>::infinity();
  for (const Frame& frame : frames)
    shortest_s = std::min(shortest_s, frame.arrived_s - frame.sent_s);
  return assumed_s < shortest_s ? assumed_s : std::max(0.0, shortest_s / 2);
}

}  // namespace

std::optional<LinkFit> fit_link(std::vector<Event> transfers, double assumed_latency_s) {
  const std::vector<Frame> frames = frames_in_order(std::move(transfers));
  double most_bytes = 0;
  for (const Frame& frame : frames) most_bytes = std::max(most_bytes, frame.bytes);
  const double large_bytes = most_bytes / 2;
  const double small_bytes = most_bytes / 4;
  constexpr std::size_t least_probes = 3;
  // Certainly not queued: everything before had arrived.
  std::vector<Frame> probes;
  for (const Frame& frame : frames)
    if (frame.bytes <= small_bytes && frame.sent_s >= frame.line_free_s) probes.push_back(frame);

  LinkFit fit;
  fit.latency_told = probes.size() >= least_probes;
  fit.latency_s = possible_latency(frames, assumed_latency_s);
  // Latency and rate each need the other. An error of one round shrinks by small over large bytes,
  // so at least to half of them.
  for (int round = 0; round < 40; ++round) {
    if (fit.latency_told) fit.latency_s = latency_of(probes, fit.rate_bytes_per_s);
    fit.rate_bytes_per_s = rate_of(frames, large_bytes, fit.latency_s);
    if (fit.rate_bytes_per_s <= 0) return std::nullopt;
  }
  replay(frames, large_bytes, fit);
  return fit;
}

}  // namespace nebula
