#pragma once

#include <functional>
#include <memory>
#include <string>

#include "exec/control.hpp"
#include "exec/tls.hpp"

namespace nebula {

// Frames one at a time, before a connection stands.

/// Empty error: written.
void write_frame(std::shared_ptr<TlsStream> stream, const Frame& frame,
                 std::function<void(const boost::system::error_code&)> done);

struct ReadFrame {
  /// Of the connection.
  boost::system::error_code error;
  /// Of what was read.
  std::string problem;
  Frame frame;
};
/// Reads one frame that isn't data.
void read_control_frame(std::shared_ptr<TlsStream> stream,
                        std::function<void(const ReadFrame&)> done);

}  // namespace nebula
