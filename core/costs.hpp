#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/cluster.hpp"
#include "core/job.hpp"
#include "core/model.hpp"

namespace nebula {

/// A quantity against the sequences of a micro-batch: straight between the points measured, and
/// beyond them along the last two (through the origin when there is one point).
struct Curve {
  std::vector<double> sequences;
  std::vector<double> values;
  bool operator==(const Curve&) const = default;

  double at(double n) const;
  Curve scaled(double factor) const;
};

struct LayerCosts {
  Curve forward_s;
  Curve backward_s;
  /// Bytes kept from forward to backward.
  Curve saved_bytes;
  /// Optimiser and norm, a step.
  double update_s = 0;
  bool operator==(const LayerCosts&) const = default;
};

/// Seconds for a tensor of n float32 elements: fixed_s + n x per_element_s.
struct CodecCosts {
  double fixed_s = 0;
  double encode_per_element_s = 0;
  double decode_per_element_s = 0;
  bool operator==(const CodecCosts&) const = default;
};

/// Costs of one kind of device.
struct DeviceCosts {
  /// By to_string(LayerKind).
  std::map<std::string, LayerCosts> layers;
  /// By codec name.
  std::map<std::string, CodecCosts> codecs;
  /// Added to every forward and every backward of a stage.
  double op_overhead_s = 0;
  /// Once a step: batch, clearing gradients, logging.
  double step_overhead_s = 0;
  std::string source;
  bool operator==(const DeviceCosts&) const = default;
};

/// What was found about a directed link; replaces the cluster file's assumption.
struct LinkCosts {
  double rate_bytes_per_s = 0;
  double latency_s = 0;
  double window_bytes = 0;
  std::string source;
  bool operator==(const LinkCosts&) const = default;
};

/// How far a calibration's own model is from the traces it was fitted to.
struct Residual {
  std::string what;  ///< "step", "forward of stage 0", "north->south"
  double predicted_s = 0;
  double measured_s = 0;
  bool operator==(const Residual&) const = default;
};

/// Seconds and bytes of every operation, whatever they were derived from.
struct Costs {
  /// "first principles", "profile" or "calibration".
  std::string source;
  std::string model;
  Precision precision = Precision::float32;
  int sequence_length = 0;
  std::map<std::string, DeviceCosts> devices;
  /// By link_name(from, to).
  std::map<std::string, LinkCosts> links;
  std::vector<Residual> residuals;
  bool operator==(const Costs&) const = default;
};

std::string link_name(std::string_view from, std::string_view to);  ///< "north->south"

/// From FLOPs, parameters and device figures alone.
Costs first_principles(const Cluster& cluster, const Model& model, const Job& job);

/// Throws InputError when the costs are of another model, precision or sequence length, or lack a
/// device of the cluster.
void check_costs(const Costs& costs, const Cluster& cluster, const Model& model, const Job& job,
                 const std::string& where);

Costs read_costs_file(const std::string& path);
std::string to_json(const Costs& costs);

}  // namespace nebula
