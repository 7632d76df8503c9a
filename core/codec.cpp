#include "core/codec.hpp"

#include "core/error.hpp"

namespace nebula {
namespace {

std::int64_t float32_bytes(const CodecSettings&, std::int64_t elements) {
  return 4 * elements;
}
std::int64_t bf16_bytes(const CodecSettings&, std::int64_t elements) {
  return 2 * elements;
}

// One float32 scale a block, then one byte an element.
std::int64_t int8_bytes(const CodecSettings& settings, std::int64_t elements) {
  const std::int64_t blocks = (elements + settings.block - 1) / settings.block;
  return 4 * blocks + elements;
}

}  // namespace

const std::vector<CodecInfo>& codecs() {
  static const std::vector<CodecInfo> table = {
      {"float32", 32, true, float32_bytes},
      {"bf16", 16, false, bf16_bytes},
      {"int8", 8, false, int8_bytes},
  };
  return table;
}

const CodecInfo& codec_info(std::string_view name) {
  std::string known;
  for (const CodecInfo& info : codecs()) {
    if (info.name == name) return info;
    known += (known.empty() ? "" : ", ") + std::string(info.name);
  }
  throw InputError("", "there is no codec '" + std::string(name) + "', expected one of " + known);
}

std::int64_t wire_bytes(const CodecSettings& settings, std::int64_t elements) {
  return codec_info(settings.name).wire_bytes(settings, elements);
}

CodecSettings read_codec(Fields fields) {
  CodecSettings settings;
  settings.name = fields.text("name");
  settings.block = fields.count_or("block", settings.block);
  if (settings.block > 1 << 20) fields.fail("block", "is larger than 1048576");
  try {
    codec_info(settings.name);
  } catch (const InputError& error) {
    fields.fail("name", error.what());
  }
  fields.finish();
  return settings;
}

Node write_codec(const CodecSettings& settings) {
  return TableWriter().set("name", settings.name).set("block", settings.block).node();
}

}  // namespace nebula
