#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace nebula {

// Integers and short text as bytes, lowest byte first, whatever the host's order.

template <std::integral T>
void put_le(std::span<std::byte> bytes, std::size_t at, T value) {
  auto rest = static_cast<std::make_unsigned_t<T>>(value);
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes[at + i] = std::byte(std::uint64_t{rest} >> (8 * i) & 0xff);
  }
}

template <std::integral T>
T get_le(std::span<const std::byte> bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    value |= std::to_integer<std::uint64_t>(bytes[at + i]) << (8 * i);
  }
  return static_cast<T>(value);
}

inline std::vector<std::byte> to_bytes(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// For logs and messages: what isn't printable shows as '?', and length is bounded.
inline std::string printable(std::span<const std::byte> bytes, std::size_t most = 2000) {
  std::string text;
  for (const std::byte byte : bytes.first(bytes.size() < most ? bytes.size() : most)) {
    const auto c = std::to_integer<unsigned char>(byte);
    text += c < 0x20 || c == 0x7f ? '?' : char(c);
  }
  return text;
}

}  // namespace nebula
