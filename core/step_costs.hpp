#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/costs.hpp"
#include "core/plan.hpp"
#include "core/schedule.hpp"

namespace nebula {

/// Layout of what travels (exec/README.md): a header before every payload, and TLS 1.3's own bytes
/// around every record of up to 16 KiB.
inline constexpr std::int64_t wire_header_bytes = 64;
inline constexpr std::int64_t tls_record_bytes = 22;
/// Payload of a norm message: what stages tell each other at the end of a step.
inline constexpr std::int64_t step_report_bytes = 32;

/// Bytes on the wire of one message of `payload` bytes.
std::int64_t framed_bytes(std::int64_t payload);

/// Seconds of one stage's ops.
struct StageCosts {
  double forward_s = 0;
  double backward_s = 0;
  double update_s = 0;
  double norm_s = 0;
  double prepare_s = 0;
};

/// How one kind of message travels from one stage to another.
struct ChannelCosts {
  /// On the wire, with framing.
  double bytes = 0;
  double encode_s = 0;
  double decode_s = 0;
  /// Index into StepCosts::lines; -1 for the same host.
  int line = -1;
  /// One way.
  double latency_s = 0;
  int connections = 1;
  /// Bytes/s that one connection carries at most; 0 is no limit.
  double connection_bytes_per_s = 0;
};

/// Capacity that channels share: a directed link, or a pair's LAN.
struct Line {
  std::string name;
  double rate_bytes_per_s = 0;
};

/// Every second and byte of one step of one plan: all that a simulation needs besides the op
/// lists. Costs in, numbers out; where they came from no longer shows.
struct StepCosts {
  Shape shape;
  std::vector<StageCosts> stages;
  std::vector<Line> lines;
  /// Between stage s and s + 1: activations forward, gradients backward.
  std::vector<ChannelCosts> forward;
  std::vector<ChannelCosts> backward;
  /// Norm messages along the same lines.
  std::vector<ChannelCosts> norm_forward;
  std::vector<ChannelCosts> norm_backward;
  /// Shared gradient from the first stage to the last and back; only when shape.tied.
  ChannelCosts tied_forward;
  ChannelCosts tied_backward;

  double op_seconds(int stage, OpKind kind) const;
  const ChannelCosts& channel(const Message& message) const;
};

/// `cluster` may differ from plan.cluster: that is a what-if.
StepCosts step_costs(const Plan& plan, const Cluster& cluster, const Costs& costs);

/// The paper's bubble ratios: (1) without transfers, (2) with unoverlapped transfers of tt each
/// way.
double paper_bubble(int p, int m);
double paper_bubble(int p, int m, double tf, double tb, double tt);

}  // namespace nebula
