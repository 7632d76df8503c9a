#include <bit>
#include <cstdint>
#include <cstring>

#include "exec/codecs/codecs.hpp"

namespace nebula {

bool encode_bf16(const CodecSettings&, std::span<const float> values, std::byte* code) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<std::uint32_t>(values[i]);
    const std::uint32_t rounded = bits + 0x7FFF + ((bits >> 16) & 1);
    // Rounding would carry a NaN's payload into the exponent: keep NaNs quiet instead.
    const bool is_nan = (bits & 0x7FFFFFFF) > 0x7F800000;
    const auto half = std::uint16_t((is_nan ? bits | 0x400000 : rounded) >> 16);
    std::memcpy(code + 2 * i, &half, sizeof half);
  }
  return true;
}

void decode_bf16(const CodecSettings&, const std::byte* code, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t half = 0;
    std::memcpy(&half, code + 2 * i, sizeof half);
    values[i] = std::bit_cast<float>(std::uint32_t{half} << 16);
  }
}

}  // namespace nebula
