#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/cluster.hpp"

namespace nebula {

/// The folder with devices.toml and regions.toml: share/nebula/presets beside the program's bin
/// folder. Throws RunError when the installation is incomplete.
std::string preset_folder();

/// A kind of device of the shipped table, or nothing.
std::optional<Device> preset_device(std::string_view kind);
/// Line from one region to another ("aws:oregon" -> "aws:tokyo") of the shipped table, or nothing.
std::optional<Link> preset_link(std::string_view from, std::string_view to);

}  // namespace nebula
