#include "exec/assembly.hpp"

#include <utility>

namespace nebula {

std::string Assembly::check(const FrameHeader& header) const {
  const auto found = partial_.find({header.step, header.message});
  if (found == partial_.end()) return {};
  const Partial& partial = found->second;
  if (int(partial.seen.size()) == header.parts &&
      std::int64_t(partial.payload.size()) == header.total && partial.sent_ns == header.sent_ns) {
    return {};
  }
  return "parts of " + to_string(header.message) + " contradict each other";
}

bool Assembly::is_new(const FrameHeader& header) const {
  const MessageKey key{header.step, header.message};
  return !partial_.contains(key) && !complete_.contains(key);
}

Assembly::Place Assembly::place(const FrameHeader& header) {
  const MessageKey key{header.step, header.message};
  if (complete_.contains(key)) return {.duplicate = true, .first = false, .bytes = {}};
  const auto [at, first] = partial_.try_emplace(key);
  Partial& partial = at->second;
  if (first) {
    partial.payload.resize(std::size_t(header.total));
    partial.seen.resize(std::size_t(header.parts));
    partial.missing = header.parts;
    partial.sent_ns = header.sent_ns;
  }
  if (partial.seen[std::size_t(header.part)])
    return {.duplicate = true, .first = false, .bytes = {}};
  partial.seen[std::size_t(header.part)] = true;
  const auto begin = part_begin(header.total, header.part, header.parts);
  return {
      .duplicate = false,
      .first = first,
      .bytes = std::span(partial.payload).subspan(std::size_t(begin), std::size_t(header.length))};
}

bool Assembly::finish(const FrameHeader& header, Received& received) {
  const auto at = partial_.find({header.step, header.message});
  Partial& partial = at->second;
  partial.wire_bytes += frame_wire_bytes(header.length);
  if (--partial.missing > 0) return false;
  received.payload = std::move(partial.payload);
  received.sent_ns = partial.sent_ns;
  received.wire_bytes = partial.wire_bytes;
  complete_.insert(at->first);
  oldest_first_.push_back(at->first);
  partial_.erase(at);
  if (oldest_first_.size() > remembered_) {
    complete_.erase(oldest_first_.front());
    oldest_first_.pop_front();
  }
  return true;
}

}  // namespace nebula
