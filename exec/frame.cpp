#include "exec/frame.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <new>

#include <xxhash.h>

#include "exec/little_endian.hpp"

namespace nebula {
namespace {

constexpr std::uint32_t magic = 0x414c424e;  // "NBLA"

// Offsets of the header's fields. Magic and version stay where they are in every version.
enum Offset : std::size_t {
  at_magic = 0,
  at_version = 4,
  at_kind = 6,
  at_message = 7,
  at_run = 8,
  at_step = 16,
  at_from = 20,
  at_to = 22,
  at_micro_batch = 24,
  at_chunk = 28,
  at_part = 30,
  at_parts = 32,
  at_reserved = 34,
  at_length = 36,
  at_total = 40,
  at_sent = 48,
  at_checksum = 56,
};

struct StateDeleter {
  void operator()(XXH3_state_t* state) const { XXH3_freeState(state); }
};

std::uint64_t checksum(std::span<const std::byte> header, std::span<const std::byte> payload) {
  const std::unique_ptr<XXH3_state_t, StateDeleter> state(XXH3_createState());
  if (!state) throw std::bad_alloc();
  XXH3_64bits_reset(state.get());
  XXH3_64bits_update(state.get(), header.data(), at_checksum);
  if (!payload.empty()) XXH3_64bits_update(state.get(), payload.data(), payload.size());
  return XXH3_64bits_digest(state.get());
}

std::string check_data(const FrameHeader& h) {
  if (h.message.from == h.message.to) return "a message from a stage to itself";
  if (h.parts < 1 || h.parts > max_frame_parts || h.part >= h.parts) {
    return "part " + std::to_string(h.part) + " of " + std::to_string(h.parts);
  }
  if (h.total < 0 || h.total > max_frame_payload_bytes * h.parts) return "impossible message size";
  if (h.length != part_begin(h.total, h.part + 1, h.parts) - part_begin(h.total, h.part, h.parts)) {
    return "a part whose length does not fit its message";
  }
  return {};
}

// Fields that only data frames use are zero elsewhere, so that every frame has one encoding.
std::string check_control(const FrameHeader& h) {
  if (h.length > max_control_payload_bytes) {
    return "a control frame of " + std::to_string(h.length) + " bytes";
  }
  FrameHeader plain;
  plain.kind = h.kind;
  plain.run = h.run;
  plain.message.from = h.message.from;
  plain.message.to = h.message.to;
  plain.length = plain.total = h.length;
  plain.sent_ns = h.sent_ns;
  return h == plain ? std::string{} : "a control frame with fields of a data frame";
}

}  // namespace

HeaderBytes encode_header(const FrameHeader& h, std::span<const std::byte> payload) {
  HeaderBytes bytes{};
  put_le(bytes, at_magic, magic);
  put_le(bytes, at_version, frame_version);
  put_le(bytes, at_kind, std::uint8_t(h.kind));
  put_le(bytes, at_message, std::uint8_t(h.message.kind));
  put_le(bytes, at_run, h.run);
  put_le(bytes, at_step, std::uint32_t(h.step));
  put_le(bytes, at_from, std::uint16_t(h.message.from));
  put_le(bytes, at_to, std::uint16_t(h.message.to));
  put_le(bytes, at_micro_batch, std::uint32_t(h.message.micro_batch));
  put_le(bytes, at_chunk, std::uint16_t(h.message.chunk));
  put_le(bytes, at_part, std::uint16_t(h.part));
  put_le(bytes, at_parts, std::uint16_t(h.parts));
  put_le(bytes, at_length, std::uint32_t(h.length));
  put_le(bytes, at_total, h.total);
  put_le(bytes, at_sent, h.sent_ns);
  put_le(bytes, at_checksum, checksum(bytes, payload));
  return bytes;
}

std::string parse_header(std::span<const std::byte, frame_header_bytes> bytes,
                         FrameHeader& header) {
  if (get_le<std::uint32_t>(bytes, at_magic) != magic) return "not a frame of Nebula";
  const auto version = get_le<std::uint16_t>(bytes, at_version);
  if (version != frame_version) {
    return "wire version " + std::to_string(version) + ", here " + std::to_string(frame_version);
  }
  const auto kind = get_le<std::uint8_t>(bytes, at_kind);
  if (kind > std::uint8_t(FrameKind::goodbye)) return "unknown kind of frame";
  const auto message = get_le<std::uint8_t>(bytes, at_message);
  if (message > std::uint8_t(MessageKind::tied_gradient)) return "unknown kind of message";
  if (get_le<std::uint16_t>(bytes, at_reserved) != 0) return "reserved bytes are not zero";
  const auto step = get_le<std::uint32_t>(bytes, at_step);
  const auto micro_batch = get_le<std::uint32_t>(bytes, at_micro_batch);
  constexpr auto most = std::uint32_t(std::numeric_limits<std::int32_t>::max());
  if (step > most || micro_batch > most) return "impossible step or micro-batch";

  FrameHeader h;
  h.kind = FrameKind(kind);
  h.run = get_le<std::uint64_t>(bytes, at_run);
  h.step = int(step);
  h.message.kind = MessageKind(message);
  h.message.from = get_le<std::uint16_t>(bytes, at_from);
  h.message.to = get_le<std::uint16_t>(bytes, at_to);
  h.message.micro_batch = int(micro_batch);
  h.message.chunk = get_le<std::uint16_t>(bytes, at_chunk);
  h.part = get_le<std::uint16_t>(bytes, at_part);
  h.parts = get_le<std::uint16_t>(bytes, at_parts);
  h.length = get_le<std::uint32_t>(bytes, at_length);
  h.total = get_le<std::int64_t>(bytes, at_total);
  h.sent_ns = get_le<std::int64_t>(bytes, at_sent);
  if (h.length > max_frame_payload_bytes)
    return "a frame of " + std::to_string(h.length) + " bytes";
  std::string problem = h.kind == FrameKind::data ? check_data(h) : check_control(h);
  if (problem.empty()) header = h;
  return problem;
}

bool checksum_matches(std::span<const std::byte, frame_header_bytes> bytes,
                      std::span<const std::byte> payload) {
  return get_le<std::uint64_t>(bytes, at_checksum) == checksum(bytes, payload);
}

std::vector<std::byte> encode_frame(const Frame& frame) {
  const HeaderBytes header = encode_header(frame.header, frame.payload);
  std::vector<std::byte> bytes(header.size() + frame.payload.size());
  std::ranges::copy(frame.payload, std::ranges::copy(header, bytes.begin()).out);
  return bytes;
}

std::string parse_frame(std::span<const std::byte> bytes, Frame& frame) {
  if (bytes.size() < frame_header_bytes) return "shorter than a header";
  const auto header_bytes = bytes.first<frame_header_bytes>();
  const auto payload = bytes.subspan(frame_header_bytes);
  FrameHeader header;
  if (std::string problem = parse_header(header_bytes, header); !problem.empty()) return problem;
  if (std::int64_t(payload.size()) != header.length) return "payload of another length";
  if (!checksum_matches(header_bytes, payload)) return "checksum does not match";
  frame = {header, {payload.begin(), payload.end()}};
  return {};
}

}  // namespace nebula
