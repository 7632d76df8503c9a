#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "exec/codecs/codecs.hpp"

namespace nebula {
namespace {

// Adding 1.5 x 2^23 leaves the nearest integer, ties to even, in the low bits of the sum: rounds
// without a call, the same on every machine.
constexpr float round_magic = 12582912.0F;
constexpr std::int32_t round_bits = 0x4B400000;

// The largest magnitude as bits: an order that NaN and infinity end.
std::uint32_t largest_bits(std::span<const float> values) {
  std::uint32_t largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & 0x7FFFFFFF);
  }
  return largest;
}

}  // namespace

bool encode_int8(const CodecSettings& settings, std::span<const float> values, std::byte* code) {
  const std::size_t n = values.size();
  const auto block = std::size_t(settings.block);
  auto* const bytes = reinterpret_cast<std::int8_t*>(code + 4 * ((n + block - 1) / block));
  for (std::size_t start = 0, b = 0; start < n; start += block, ++b) {
    const auto part = values.subspan(start, std::min(block, n - start));
    const std::uint32_t largest = largest_bits(part);
    if (largest >= 0x7F800000) return false;
    const float scale = std::bit_cast<float>(largest) / 127;
    std::memcpy(code + 4 * b, &scale, sizeof scale);
    // A scale too small to invert stands for a block of zeros.
    const float inverse = scale > 1e-38F ? 1 / scale : 0;
    for (std::size_t i = 0; i < part.size(); ++i) {
      const float shifted = part[i] * inverse + round_magic;
      bytes[start + i] = std::int8_t(std::bit_cast<std::int32_t>(shifted) - round_bits);
    }
  }
  return true;
}

void decode_int8(const CodecSettings& settings, const std::byte* code, std::span<float> values) {
  const std::size_t n = values.size();
  const auto block = std::size_t(settings.block);
  const auto* const bytes =
      reinterpret_cast<const std::int8_t*>(code + 4 * ((n + block - 1) / block));
  for (std::size_t start = 0, b = 0; start < n; start += block, ++b) {
    float scale = 0;
    std::memcpy(&scale, code + 4 * b, sizeof scale);
    const std::size_t end = std::min(n, start + block);
    for (std::size_t i = start; i < end; ++i) values[i] = scale * float(bytes[i]);
  }
}

}  // namespace nebula
