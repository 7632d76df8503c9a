#include <cstring>

#include "exec/codecs/codecs.hpp"

namespace nebula {

bool encode_float32(const CodecSettings&, std::span<const float> values, std::byte* code) {
  if (!values.empty()) std::memcpy(code, values.data(), values.size_bytes());
  return true;
}

void decode_float32(const CodecSettings&, const std::byte* code, std::span<float> values) {
  if (!values.empty()) std::memcpy(values.data(), code, values.size_bytes());
}

}  // namespace nebula
