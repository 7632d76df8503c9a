#pragma once

#include <optional>
#include <vector>

#include "core/timeline.hpp"

namespace nebula {

/// What a directed line did to the messages that crossed it: each waits for the one before it,
/// then takes bytes / rate, and arrives latency later.
struct LinkFit {
  double rate_bytes_per_s = 0;
  double latency_s = 0;
  /// False when the latency is an assumption.
  bool latency_told = false;
  /// Median seconds from ready-to-send to arrival of the large messages: as this model replays
  /// them, and as they were.
  double predicted_s = 0;
  double measured_s = 0;
};

/// Fits the transfers of one directed line. Latency is the lowest decile of small messages sent
/// when everything before had arrived. Where there are hardly any it can't be told from the rate,
/// and `assumed_latency_s` holds unless a message was quicker. Nothing when the transfers tell no
/// rate.
std::optional<LinkFit> fit_link(std::vector<Event> transfers, double assumed_latency_s);

}  // namespace nebula
