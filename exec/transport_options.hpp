#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "exec/wan_emulation.hpp"

namespace nebula {

/// Where the process of a stage listens.
struct Endpoint {
  int stage = 0;
  std::string cloud;
  std::string host = "127.0.0.1";
  int port = 0;
  bool operator==(const Endpoint&) const = default;
};

/// "stage 2 (south)", as in every message to the user.
inline std::string stage_name(const Endpoint& endpoint) {
  return "stage " + std::to_string(endpoint.stage) + " (" + endpoint.cloud + ")";
}

/// Another stage that this one exchanges messages with.
struct PeerOptions {
  Endpoint endpoint;
  /// TLS connections that share the messages of both directions; both sides give the same number.
  int connections = 1;
  /// Of the line from here to there.
  std::optional<LinkEmulation> emulation;
};

enum class LogLevel { info, warning };

struct TransportOptions {
  Endpoint own;
  std::vector<PeerOptions> peers;
  /// As made by make_keys().
  std::string key_folder;
  /// Two processes only talk when these three agree.
  std::uint64_t plan_hash = 0;
  std::uint64_t data_hash = 0;
  int start_step = 0;

  /// Clouds are started by hand, one after the other.
  double connect_timeout_s = 120;
  /// For one connection's TLS handshake and hello.
  double handshake_timeout_s = 10;
  /// A message that is waited for; must exceed the longest time a healthy peer may be busy
  /// otherwise (evaluation, checkpoint).
  double message_timeout_s = 600;
  /// A host that acknowledges nothing for so long has vanished. A process that merely stands still
  /// doesn't count: its kernel goes on acknowledging.
  double host_timeout_s = 20;
  /// For peers' goodbyes at the end.
  double close_timeout_s = 30;
  /// Bytes queued for sending, and bytes received that nobody has asked for yet: more is an error.
  std::int64_t send_buffer_bytes = std::int64_t{2} << 30;
  std::int64_t receive_buffer_bytes = std::int64_t{1} << 30;

  /// Called from several threads. May be empty.
  std::function<void(LogLevel, const std::string&)> log;
};

}  // namespace nebula
