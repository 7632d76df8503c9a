#include "core/presets.hpp"

#include <filesystem>

#include "core/error.hpp"
#include "core/node.hpp"

namespace nebula {
namespace {

Link line_of(Fields& fields, bool reverse) {
  Link link;
  link.latency_s = fields.quantity("rtt", Unit::seconds) / 2;
  link.rate_bytes_per_s = fields.quantity("rate", Unit::bytes_per_s);
  const double back = fields.quantity_or("rate_b_to_a", Unit::bytes_per_s, link.rate_bytes_per_s);
  if (reverse) link.rate_bytes_per_s = back;
  const auto there = fields.optional_quantity("egress_a_to_b", Unit::usd_per_gb);
  const auto home = fields.optional_quantity("egress_b_to_a", Unit::usd_per_gb);
  link.egress_usd_per_gb = reverse ? home : there;
  fields.skip("connections");
  link.source = fields.text("source");
  fields.finish();
  return link;
}

}  // namespace

std::string preset_folder() {
  const auto bin = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  const auto folder = bin.parent_path() / "share" / "nebula" / "presets";
  if (!std::filesystem::exists(folder / "devices.toml")) {
    throw RunError("the presets are missing from " + folder.string() +
                   ": is the installation complete?");
  }
  return folder.string();
}

std::optional<Device> preset_device(std::string_view kind) {
  const std::string path = preset_folder() + "/devices.toml";
  const Node node = read_node_file(path);
  Fields fields(node, path);
  fields.expect_format("nebula-devices", 1);
  for (auto& [name, table] : fields.named_tables("devices")) {
    if (name != kind) continue;
    Device device;
    device.kind = name;
    device.peak_flops_per_s = table.quantity("peak", Unit::flops_per_s);
    device.memory_bytes = table.quantity("memory", Unit::bytes);
    device.memory_bytes_per_s = table.quantity_or("memory_rate", Unit::bytes_per_s, 0);
    device.price_usd_per_hour = table.optional_quantity("price", Unit::usd_per_hour);
    device.source = table.text("source");
    table.finish();
    return device;
  }
  return std::nullopt;
}

std::optional<Link> preset_link(std::string_view from, std::string_view to) {
  if (from.empty() || to.empty()) return std::nullopt;
  const std::string path = preset_folder() + "/regions.toml";
  const Node node = read_node_file(path);
  Fields fields(node, path);
  fields.expect_format("nebula-regions", 1);
  for (Fields& table : fields.tables("lines")) {
    const std::string a = table.text("a");
    const std::string b = table.text("b");
    if ((a == from && b == to) || (a == to && b == from)) return line_of(table, a != from);
  }
  return std::nullopt;
}

}  // namespace nebula
