#include "core/cluster.hpp"

#include <algorithm>
#include <cstdlib>

#include "core/costs.hpp"
#include "core/error.hpp"
#include "core/presets.hpp"

namespace nebula {
namespace {

template <typename Items, typename Match>
auto find_in(const Items& items, Match match) {
  const auto it = std::find_if(items.begin(), items.end(), match);
  return it == items.end() ? nullptr : &*it;
}

Device read_device(const std::string& kind, Fields fields) {
  Device device = preset_device(kind).value_or(Device{});
  const bool known = !device.kind.empty();
  device.kind = kind;
  const auto quantity = [&](std::string_view key, Unit unit, double& value) {
    if (known) {
      value = fields.quantity_or(key, unit, value);
    } else {
      value = fields.quantity(key, unit);
    }
    if (value <= 0) fields.fail(key, "must be more than zero");
  };
  quantity("peak", Unit::flops_per_s, device.peak_flops_per_s);
  quantity("memory", Unit::bytes, device.memory_bytes);
  device.memory_bytes_per_s =
      fields.quantity_or("memory_rate", Unit::bytes_per_s, known ? device.memory_bytes_per_s : 0.0);
  device.reached = fields.number_or("reached", device.reached);
  if (device.reached <= 0 || device.reached > 1) fields.fail("reached", "must be in (0, 1]");
  device.threads = fields.count_or("threads", device.threads, 0);
  if (const auto price = fields.optional_quantity("price", Unit::usd_per_hour)) {
    device.price_usd_per_hour = price;
  }
  device.source = fields.text("source", known ? device.source : fields.file());
  fields.finish();
  return device;
}

// "host:port"; an IPv6 address stands in brackets.
void read_address(Fields& fields, Cloud& cloud) {
  if (!fields.has("address")) return;
  const std::string address = fields.text("address");
  const auto colon = address.rfind(':');
  char* end = nullptr;
  const long port =
      colon == std::string::npos ? 0 : std::strtol(address.c_str() + colon + 1, &end, 10);
  if (colon == 0 || !end || *end || port < 1 || port > 65535 - 256) {
    fields.fail("address", "is '" + address + "', expected host:port with a port of 1 to 65279");
  }
  cloud.host = address.substr(0, colon);
  if (cloud.host.front() == '[' && cloud.host.back() == ']') {
    cloud.host = cloud.host.substr(1, cloud.host.size() - 2);
  }
  cloud.port = int(port);
}

Cloud read_cloud(Fields& fields) {
  Cloud cloud;
  cloud.name = fields.text("name");
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  };
  // The name becomes part of file names and certificates.
  if (cloud.name.empty() || cloud.name.size() > 40 ||
      !std::all_of(cloud.name.begin(), cloud.name.end(), plain)) {
    fields.fail("name", "is '" + cloud.name + "', expected 1 to 40 letters, digits, - or _");
  }
  cloud.region = fields.text("region", "");
  for (Fields& group : fields.tables("devices")) {
    cloud.devices.push_back({group.text("kind"), group.count_or("count", 1)});
    group.finish();
  }
  if (cloud.devices.empty()) fields.fail("devices", "is empty; a cloud has at least one device");
  read_address(fields, cloud);
  cloud.lan_rate_bytes_per_s =
      fields.quantity_or("lan_rate", Unit::bytes_per_s, cloud.lan_rate_bytes_per_s);
  cloud.lan_latency_s = fields.quantity_or("lan_latency", Unit::seconds, cloud.lan_latency_s);
  if (cloud.lan_rate_bytes_per_s <= 0) fields.fail("lan_rate", "must be more than zero");
  fields.finish();
  return cloud;
}

// One [[links]] entry: `between` gives both directions, `from` and `to` one.
void read_link(Fields& fields, Cluster& cluster) {
  std::vector<std::pair<std::string, std::string>> ends;
  if (fields.has("between")) {
    const auto names = fields.texts("between");
    if (names.size() != 2) fields.fail("between", "expected two clouds");
    ends = {{names[0], names[1]}, {names[1], names[0]}};
  } else {
    ends = {{fields.text("from"), fields.text("to")}};
  }
  for (const auto& [from, to] : ends) {
    const std::string_view key = fields.has("between") ? "between" : "from";
    for (const std::string& name : {from, to}) {
      if (!cluster.find_cloud(name))
        fields.fail(key, "names no cloud of this file: '" + name + "'");
    }
    if (from == to)
      fields.fail(key, "joins '" + from + "' to itself; lan_rate is a cloud's own key");
    if (cluster.find_link(from, to)) {
      fields.fail(key, "describes " + link_name(from, to) + " a second time");
    }
    Link link;
    if (const auto preset =
            preset_link(cluster.find_cloud(from)->region, cluster.find_cloud(to)->region)) {
      link = *preset;
    }
    const bool known = link.rate_bytes_per_s > 0;
    link.from = from;
    link.to = to;
    if (!known || fields.has("rate") || fields.has("rate_bytes_per_s")) {
      link.rate_bytes_per_s = fields.quantity("rate", Unit::bytes_per_s);
      link.source = fields.file();
    }
    if (link.rate_bytes_per_s <= 0) fields.fail("rate", "must be more than zero");
    if (const auto rtt = fields.optional_quantity("rtt", Unit::seconds)) {
      link.latency_s = *rtt / 2;
    } else if (const auto latency = fields.optional_quantity("latency", Unit::seconds)) {
      link.latency_s = *latency;
    } else if (!known) {
      fields.fail("rtt", "is missing (or latency, one way)");
    }
    link.window_bytes = fields.quantity_or("window", Unit::bytes, link.window_bytes);
    if (const auto price = fields.optional_quantity("egress", Unit::usd_per_gb)) {
      link.egress_usd_per_gb = price;
    }
    link.source = fields.text("source", link.source);
    cluster.links.push_back(link);
  }
  fields.finish();
}

// Links that only the presets know: between every two clouds with regions and no link of their own.
void add_preset_links(Cluster& cluster) {
  for (const Cloud& from : cluster.clouds) {
    for (const Cloud& to : cluster.clouds) {
      if (&from == &to || cluster.find_link(from.name, to.name)) continue;
      if (auto link = preset_link(from.region, to.region)) {
        link->from = from.name;
        link->to = to.name;
        cluster.links.push_back(*link);
      }
    }
  }
}

}  // namespace

const Cloud* Cluster::find_cloud(std::string_view name) const {
  return find_in(clouds, [&](const Cloud& cloud) { return cloud.name == name; });
}
const Device* Cluster::find_device(std::string_view kind) const {
  return find_in(devices, [&](const Device& device) { return device.kind == kind; });
}
const Link* Cluster::find_link(std::string_view from, std::string_view to) const {
  return find_in(links, [&](const Link& link) { return link.from == from && link.to == to; });
}

Cluster read_cluster_file(const std::string& path) {
  const Node node = read_node_file(path);
  Fields fields(node, path);
  fields.expect_format("nebula-cluster", 1);
  return read_cluster(std::move(fields));
}

Cluster read_cluster(Fields fields) {
  fields.skip("format");
  fields.skip("version");
  Cluster cluster;
  if (fields.has("devices")) {
    for (auto& [kind, table] : fields.named_tables("devices")) {
      cluster.devices.push_back(read_device(kind, table));
    }
  }
  for (Fields& table : fields.tables("clouds")) {
    Cloud cloud = read_cloud(table);
    if (cluster.find_cloud(cloud.name)) table.fail("name", "'" + cloud.name + "' stands twice");
    for (const DeviceGroup& group : cloud.devices) {
      if (cluster.find_device(group.kind)) continue;
      const auto preset = preset_device(group.kind);
      if (!preset) {
        table.fail("devices", "kind '" + group.kind + "' is neither described under [devices." +
                                  group.kind + "] nor one of the presets");
      }
      cluster.devices.push_back(*preset);
    }
    cluster.clouds.push_back(std::move(cloud));
  }
  if (cluster.clouds.empty()) fields.fail("clouds", "is empty; a cluster has at least one cloud");
  if (fields.has("links")) {
    for (Fields& table : fields.tables("links")) read_link(table, cluster);
  }
  add_preset_links(cluster);
  fields.finish();
  return cluster;
}

Node write_cluster(const Cluster& cluster) {
  NodeTable devices;
  for (const Device& device : cluster.devices) {
    devices.emplace_back(device.kind, TableWriter()
                                          .set("peak_flops_per_s", device.peak_flops_per_s)
                                          .set("reached", device.reached)
                                          .set("memory_bytes", device.memory_bytes)
                                          .set("memory_rate_bytes_per_s", device.memory_bytes_per_s)
                                          .set("threads", device.threads)
                                          .set("price_usd_per_hour", device.price_usd_per_hour)
                                          .set("source", device.source)
                                          .node());
  }
  NodeList clouds;
  for (const Cloud& cloud : cluster.clouds) {
    NodeList groups;
    for (const DeviceGroup& group : cloud.devices) {
      groups.push_back(TableWriter().set("kind", group.kind).set("count", group.count).node());
    }
    const bool v6 = cloud.host.find(':') != std::string::npos;
    const std::string host = v6 ? "[" + cloud.host + "]" : cloud.host;
    clouds.push_back(TableWriter()
                         .set("name", cloud.name)
                         .set("region", cloud.region)
                         .set("devices", Node{std::move(groups), 0})
                         .set("address", host + ":" + std::to_string(cloud.port))
                         .set("lan_rate_bytes_per_s", cloud.lan_rate_bytes_per_s)
                         .set("lan_latency_s", cloud.lan_latency_s)
                         .node());
  }
  NodeList links;
  for (const Link& link : cluster.links) {
    links.push_back(TableWriter()
                        .set("from", link.from)
                        .set("to", link.to)
                        .set("rate_bytes_per_s", link.rate_bytes_per_s)
                        .set("latency_s", link.latency_s)
                        .set("window_bytes", link.window_bytes)
                        .set("egress_usd_per_gb", link.egress_usd_per_gb)
                        .set("source", link.source)
                        .node());
  }
  return TableWriter()
      .set("devices", Node{std::move(devices), 0})
      .set("clouds", Node{std::move(clouds), 0})
      .set("links", Node{std::move(links), 0})
      .node();
}

}  // namespace nebula
