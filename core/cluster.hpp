#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/fields.hpp"

namespace nebula {

/// A kind of device: a GPU, an NPU, or a share of a CPU. Numbers come from the cluster file or
/// from the presets.
struct Device {
  std::string kind;
  /// Dense bf16 peak, FLOP/s.
  double peak_flops_per_s = 0;
  /// Fraction of the peak that training reaches; assumed until something was measured.
  double reached = 0.45;
  double memory_bytes = 0;
  double memory_bytes_per_s = 0;
  /// CPU threads a device stands for; 0 for accelerators.
  int threads = 0;
  /// Unknown is not zero.
  std::optional<double> price_usd_per_hour;
  /// Where the figures come from.
  std::string source;
  bool operator==(const Device&) const = default;
};

/// Devices of one kind inside a cloud.
struct DeviceGroup {
  std::string kind;
  int count = 1;
  bool operator==(const DeviceGroup&) const = default;
};

/// A site with fast links inside.
struct Cloud {
  std::string name;
  /// Provider and region of the presets ("aws:oregon"), or empty.
  std::string region;
  std::vector<DeviceGroup> devices;
  /// Where its processes listen: stage s of the plan takes port + s.
  std::string host = "127.0.0.1";
  int port = 7400;
  /// Network inside the cloud: rate and one-way latency between two devices.
  double lan_rate_bytes_per_s = 10e9 / 8;
  double lan_latency_s = 50e-6;
  bool operator==(const Cloud&) const = default;
};

/// One direction of the line between two clouds.
struct Link {
  std::string from;
  std::string to;
  double rate_bytes_per_s = 0;
  /// One way.
  double latency_s = 0;
  /// Bytes one TCP connection keeps in flight: it carries at most window / (2 latency).
  /// 0 means that the connection alone can fill the line.
  double window_bytes = 0;
  std::optional<double> egress_usd_per_gb;
  std::string source;
  bool operator==(const Link&) const = default;
};

/// What there is to train on. Kinds of device, clouds and directed links, each listed once.
struct Cluster {
  std::vector<Device> devices;
  std::vector<Cloud> clouds;
  std::vector<Link> links;
  bool operator==(const Cluster&) const = default;

  /// nullptr when absent.
  const Cloud* find_cloud(std::string_view name) const;
  const Device* find_device(std::string_view kind) const;
  const Link* find_link(std::string_view from, std::string_view to) const;
};

/// Reads examples/*.cluster.toml; device kinds and regions that the file does not describe come
/// from the presets. Throws InputError.
Cluster read_cluster_file(const std::string& path);
/// The same tables inside another file (a plan embeds its cluster).
Cluster read_cluster(Fields fields);
Node write_cluster(const Cluster& cluster);

}  // namespace nebula
