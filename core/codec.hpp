#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/fields.hpp"

namespace nebula {

/// How a boundary's tensor travels.
struct CodecSettings {
  std::string name = "float32";
  /// Elements that share a scale; only block codecs read it.
  int block = 64;
  bool operator==(const CodecSettings&) const = default;
};

/// What planner, simulator and executor need to know of a codec without running it.
struct CodecInfo {
  std::string_view name;
  /// Bits an element, without scales: the planner prefers more bits among plans of equal time.
  int bits;
  /// True where decode(encode(x)) == x for every float32 x.
  bool exact;
  /// Exact bytes of the encoded payload of `elements` float32 values.
  std::int64_t (*wire_bytes)(const CodecSettings& settings, std::int64_t elements);
};

/// The one registration: a row here and a kernel of the same name in exec/tensor_codec.cpp.
const std::vector<CodecInfo>& codecs();
/// Throws InputError that lists the known names.
const CodecInfo& codec_info(std::string_view name);
std::int64_t wire_bytes(const CodecSettings& settings, std::int64_t elements);

CodecSettings read_codec(Fields fields);
Node write_codec(const CodecSettings& settings);

}  // namespace nebula
