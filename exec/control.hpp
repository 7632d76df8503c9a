#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exec/frame.hpp"

namespace nebula {

// What control frames carry. README.md has the layouts.

/// Payload of hello and welcome. The stages and the plan's hash stand in the frame's header.
struct Hello {
  std::uint64_t data_hash = 0;
  /// Random, one a process: connections of an earlier process do not mix with a later one's.
  std::uint64_t process = 0;
  /// The step that the sender is about to run.
  int start_step = 0;
  /// This is connection `connection` of `connections` between the two stages.
  int connection = 0;
  int connections = 1;
  std::string cloud;
  bool operator==(const Hello&) const = default;
};

/// Payload of ping (sent_ns alone) and pong.
struct Ping {
  /// Clock of the ping's sender when it left.
  std::int64_t sent_ns = 0;
  /// Clock of the other side when ping arrived and pong left; 0 in a ping.
  std::int64_t received_ns = 0;
  std::int64_t answered_ns = 0;
  bool operator==(const Ping&) const = default;
};

std::vector<std::byte> encode_hello(const Hello& hello);
/// Empty, or what is wrong with the payload.
std::string parse_hello(std::span<const std::byte> payload, Hello& hello);

std::vector<std::byte> encode_ping(const Ping& ping);
std::string parse_ping(std::span<const std::byte> payload, Ping& ping);

/// A control frame between two stages of a run.
Frame control_frame(FrameKind kind, std::uint64_t run, int from, int to,
                    std::vector<std::byte> payload = {});

}  // namespace nebula
