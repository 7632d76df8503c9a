#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include <stdlib.h>

#include "core/error.hpp"
#include "exec/certificates.hpp"
#include "exec/transport.hpp"

namespace nebula::test {

/// A folder that goes when the test ends.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "nebula-XXXXXX").string();
    if (!::mkdtemp(name.data())) throw RunError("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

/// What a transport logged.
class Log {
 public:
  std::function<void(LogLevel, const std::string&)> sink() {
    return [this](LogLevel, const std::string& line) {
      const std::lock_guard lock(mutex_);
      text_ += line + "\n";
    };
  }
  std::string text() const {
    const std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

inline const std::vector<std::string>& clouds() {
  static const std::vector<std::string> names{"north", "mid", "south"};
  return names;
}

/// Options of a stage of a chain on this host, stage s in clouds()[s]; ports are filled in later.
inline TransportOptions chain_options(int stage, int stages, const std::string& key_folder,
                                      Log& log, int connections = 1) {
  TransportOptions options;
  options.own = {stage, clouds()[std::size_t(stage)], "127.0.0.1", 0};
  for (const int other : {stage - 1, stage + 1}) {
    if (other < 0 || other >= stages) continue;
    options.peers.push_back(
        {{other, clouds()[std::size_t(other)], "127.0.0.1", 0}, connections, std::nullopt});
  }
  options.key_folder = key_folder;
  options.plan_hash = 0x1234;
  options.data_hash = 0x5678;
  options.connect_timeout_s = 60;
  options.message_timeout_s = 60;
  options.log = log.sink();
  return options;
}

/// A chain of connected stages in this process.
struct Chain {
  using Adjust = std::function<void(TransportOptions&)>;

  explicit Chain(int stages, int connections = 1, const Adjust& adjust = {})
      : logs(std::size_t(stages)), transports(std::size_t(stages)) {
    make_keys(folder / "keys", clouds());
    // A stage dials the next higher one, whose port must be known.
    for (int stage = stages - 1; stage >= 0; --stage) {
      auto options =
          chain_options(stage, stages, folder / "keys", logs[std::size_t(stage)], connections);
      for (PeerOptions& peer : options.peers) {
        if (peer.endpoint.stage > stage) peer.endpoint.port = at(stage + 1).port();
      }
      if (adjust) adjust(options);
      transports[std::size_t(stage)] = std::make_unique<Transport>(std::move(options));
    }
    for_all([](Transport& t) { t.connect(); });
  }

  Transport& at(int stage) { return *transports[std::size_t(stage)]; }

  /// At all stages at once; throws what the first of them threw.
  void for_all(const std::function<void(Transport&)>& call) {
    std::vector<std::future<void>> calls;
    for (const auto& transport : transports) {
      calls.push_back(std::async(std::launch::async, [&] { call(*transport); }));
    }
    for (auto& one : calls) one.wait();
    for (auto& one : calls) one.get();
  }

  TemporaryFolder folder;
  std::vector<Log> logs;
  std::vector<std::unique_ptr<Transport>> transports;
};

inline Message activation(int micro_batch, int from = 0, int to = 1) {
  return {MessageKind::activation, from, to, micro_batch, 0};
}
inline Message gradient(int micro_batch, int from = 1, int to = 0) {
  return {MessageKind::gradient, from, to, micro_batch, 0};
}

inline std::vector<std::byte> random_bytes(std::mt19937_64& random, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = std::byte(random() & 0xff);
  return bytes;
}

/// The RunError that `call` throws; empty when it throws none.
inline std::string run_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const RunError& error) {
    return error.what();
  }
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace nebula::test
