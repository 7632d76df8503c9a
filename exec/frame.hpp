#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/schedule.hpp"

namespace nebula {

// The unit of the wire: a fixed header and a payload. README.md has the layout, field by field.

inline constexpr std::uint16_t frame_version = 1;
inline constexpr std::size_t frame_header_bytes = 64;
/// Largest payload of one frame, and of a frame that isn't data.
inline constexpr std::int64_t max_frame_payload_bytes = std::int64_t{1} << 30;
inline constexpr std::int64_t max_control_payload_bytes = 8192;
inline constexpr int max_frame_parts = 256;
/// Plaintext of a full TLS record, and what TLS 1.3 adds to each: header 5, content type 1, tag 16.
inline constexpr std::int64_t tls_record_plain_bytes = 16384;
inline constexpr std::int64_t tls_record_overhead_bytes = 22;

/// TCP payload bytes that a frame costs; equals core's framed_bytes().
constexpr std::int64_t frame_wire_bytes(std::int64_t payload) {
  const std::int64_t plain = payload + std::int64_t(frame_header_bytes);
  const std::int64_t records = (plain + tls_record_plain_bytes - 1) / tls_record_plain_bytes;
  return plain + records * tls_record_overhead_bytes;
}

enum class FrameKind : std::uint8_t {
  hello,    ///< a dialler's first frame: who it is and what it runs
  welcome,  ///< the listener's answer, with the same fields
  refuse,   ///< the listener's other answer: why not, as text
  data,     ///< a part of a message between stages
  ping,
  pong,
  abort,    ///< the sender's run failed: why, as text
  goodbye,  ///< the last frame of a connection: all was sent
};

struct FrameHeader {
  FrameKind kind = FrameKind::data;
  /// Hash of the plan; frames of another plan are refused.
  std::uint64_t run = 0;
  int step = 0;
  Message message;
  /// This frame carries part `part` of `parts` of the message's `total` bytes.
  int part = 0;
  int parts = 1;
  std::int64_t length = 0;
  std::int64_t total = 0;
  /// When the message was handed to the transport: unix ns, on the sender's clock.
  std::int64_t sent_ns = 0;
  bool operator==(const FrameHeader&) const = default;
};

/// Where a part starts within its message: part p covers [part_begin(p), part_begin(p + 1)).
constexpr std::int64_t part_begin(std::int64_t total, int part, int parts) {
  return total / parts * part + total % parts * part / parts;
}

using HeaderBytes = std::array<std::byte, frame_header_bytes>;

/// Checksum included, so the payload must be at hand.
HeaderBytes encode_header(const FrameHeader& header, std::span<const std::byte> payload);

/// Empty when the header is one that this version can read, with all limits kept; otherwise what
/// is wrong with it. The checksum is not looked at.
std::string parse_header(std::span<const std::byte, frame_header_bytes> bytes, FrameHeader& header);

/// True when header and payload are what the sender checksummed.
bool checksum_matches(std::span<const std::byte, frame_header_bytes> bytes,
                      std::span<const std::byte> payload);

struct Frame {
  FrameHeader header;
  std::vector<std::byte> payload;
  bool operator==(const Frame&) const = default;
};

std::vector<std::byte> encode_frame(const Frame& frame);
/// `bytes` must hold exactly one frame. Empty, or what's wrong.
std::string parse_frame(std::span<const std::byte> bytes, Frame& frame);

}  // namespace nebula
