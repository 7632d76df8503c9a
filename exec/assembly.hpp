#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "exec/frame.hpp"
#include "exec/mailbox.hpp"

namespace nebula {

/// Puts the parts of messages from one peer together, each read straight into its place, and knows
/// what came before: a part or message that comes again is a duplicate.
class Assembly {
 public:
  /// Messages remembered after they were complete.
  explicit Assembly(std::size_t remembered = 65536) : remembered_(remembered) {}

  struct Place {
    bool duplicate = false;
    /// True when this is the first part seen of its message.
    bool first = false;
    /// Where the part's bytes belong; stays valid until the message is complete.
    std::span<std::byte> bytes;
  };

  /// What's wrong with a part that contradicts an earlier one of its message; empty otherwise.
  std::string check(const FrameHeader& header) const;
  bool is_new(const FrameHeader& header) const;
  /// For a part that passed check().
  Place place(const FrameHeader& header);
  /// The placed part was read. True when the message is complete; `received` then has all but the
  /// times.
  bool finish(const FrameHeader& header, Received& received);

 private:
  struct Partial {
    std::vector<std::byte> payload;
    std::vector<bool> seen;
    int missing = 0;
    std::int64_t sent_ns = 0;
    std::int64_t wire_bytes = 0;
  };

  std::size_t remembered_;
  std::map<MessageKey, Partial> partial_;
  std::set<MessageKey> complete_;
  std::deque<MessageKey> oldest_first_;
};

}  // namespace nebula
