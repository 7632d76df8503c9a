#include "core/schedule.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/error.hpp"

namespace nebula {
namespace {

// Model parts in order of the forward: part v lives on stage v % stages as its chunk v / stages.
int part_of(const Shape& shape, int stage, int chunk) {
  return chunk * shape.stages + stage;
}
int last_part(const Shape& shape) {
  return shape.stages * shape.chunks - 1;
}

void add_hop(std::vector<Message>& messages, const Shape& shape, MessageKind kind, int from_part,
             int to_part, int micro_batch) {
  const int from = from_part % shape.stages;
  const int to = to_part % shape.stages;
  if (from != to) messages.push_back({kind, from, to, micro_batch, to_part / shape.stages});
}

int other_end(const Shape& shape, int stage) {
  return stage == 0 ? shape.stages - 1 : 0;
}

std::string place(int stage, std::size_t position, const Op& op) {
  return "stage " + std::to_string(stage) + ", position " + std::to_string(position) + ", op " +
         to_string(op);
}

void check_complete(const Shape& shape, const OpLists& lists) {
  if (int(lists.size()) != shape.stages) {
    throw InputError("schedule", "has " + std::to_string(lists.size()) + " op lists for " +
                                     std::to_string(shape.stages) + " stages");
  }
  bool any_backward = false;
  for (const auto& ops : lists) {
    for (const Op& op : ops) any_backward |= op.kind == OpKind::backward;
  }
  for (int stage = 0; stage < shape.stages; ++stage) {
    std::set<Op> seen;
    const auto& ops = lists[std::size_t(stage)];
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Op& op = ops[i];
      const bool inside = op.micro_batch >= 0 && op.micro_batch < shape.micro_batches &&
                          op.chunk >= 0 && op.chunk < shape.chunks;
      if (!inside) {
        throw InputError(
            "schedule", place(stage, i, op) + ": there are " + std::to_string(shape.micro_batches) +
                            " micro-batches and " + std::to_string(shape.chunks) + " chunks");
      }
      if (!seen.insert(op).second) {
        throw InputError("schedule", place(stage, i, op) + ": stands twice");
      }
      Op forward = op;
      forward.kind = OpKind::forward;
      if (op.kind == OpKind::backward && !seen.contains(forward)) {
        throw InputError("schedule", place(stage, i, op) + ": before its forward");
      }
    }
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      for (int i = 0; i < shape.micro_batches; ++i) {
        for (const OpKind kind : {OpKind::forward, OpKind::backward}) {
          const Op op{kind, i, chunk};
          if ((kind == OpKind::forward || any_backward) && !seen.contains(op)) {
            throw InputError("schedule", "stage " + std::to_string(stage) + ": op " +
                                             to_string(op) + " is missing");
          }
        }
      }
    }
  }
}

}  // namespace

std::string to_string(const Op& op) {
  std::string text;
  switch (op.kind) {
    case OpKind::forward:
      text = "F";
      break;
    case OpKind::backward:
      text = "B";
      break;
    case OpKind::tie_send:
      return "tie_send";
    case OpKind::tie_receive:
      return "tie_receive";
    case OpKind::sum_norm:
      return "sum_norm";
    case OpKind::share_norm:
      return "share_norm";
    case OpKind::update:
      return "update";
  }
  text += std::to_string(op.micro_batch);
  if (op.chunk > 0) text += "." + std::to_string(op.chunk);
  return text;
}

std::string_view to_string(MessageKind kind) {
  switch (kind) {
    case MessageKind::activation:
      return "activation";
    case MessageKind::gradient:
      return "gradient";
    case MessageKind::norm_partial:
      return "norm_partial";
    case MessageKind::norm_total:
      return "norm_total";
    case MessageKind::tied_gradient:
      return "tied_gradient";
  }
  return "";
}

std::string to_string(const Message& message) {
  std::string text(to_string(message.kind));
  if (message.kind == MessageKind::activation || message.kind == MessageKind::gradient) {
    text += " " + std::to_string(message.micro_batch);
    if (message.chunk > 0) text += "." + std::to_string(message.chunk);
  }
  return text + " from stage " + std::to_string(message.from) + " to stage " +
         std::to_string(message.to);
}

std::vector<Message> needs(const Shape& shape, int stage, const Op& op) {
  std::vector<Message> messages;
  const int part = part_of(shape, stage, op.chunk);
  switch (op.kind) {
    case OpKind::forward:
      if (part > 0) {
        add_hop(messages, shape, MessageKind::activation, part - 1, part, op.micro_batch);
      }
      break;
    case OpKind::backward:
      if (part < last_part(shape)) {
        add_hop(messages, shape, MessageKind::gradient, part + 1, part, op.micro_batch);
      }
      break;
    case OpKind::tie_receive:
      messages.push_back({MessageKind::tied_gradient, other_end(shape, stage), stage});
      break;
    case OpKind::sum_norm:
      if (stage + 1 < shape.stages) {
        messages.push_back({MessageKind::norm_partial, stage + 1, stage});
      }
      break;
    case OpKind::share_norm:
      if (stage > 0) messages.push_back({MessageKind::norm_total, stage - 1, stage});
      break;
    case OpKind::tie_send:
    case OpKind::update:
      break;
  }
  return messages;
}

std::vector<Message> emits(const Shape& shape, int stage, const Op& op) {
  std::vector<Message> messages;
  const int part = part_of(shape, stage, op.chunk);
  switch (op.kind) {
    case OpKind::forward:
      if (part < last_part(shape)) {
        add_hop(messages, shape, MessageKind::activation, part, part + 1, op.micro_batch);
      }
      break;
    case OpKind::backward:
      if (part > 0) add_hop(messages, shape, MessageKind::gradient, part, part - 1, op.micro_batch);
      break;
    case OpKind::tie_send:
      messages.push_back({MessageKind::tied_gradient, stage, other_end(shape, stage)});
      break;
    case OpKind::sum_norm:
      // The sum travels with the gradients, towards stage 0; there it turns.
      if (stage > 0) {
        messages.push_back({MessageKind::norm_partial, stage, stage - 1});
      } else if (shape.stages > 1) {
        messages.push_back({MessageKind::norm_total, 0, 1});
      }
      break;
    case OpKind::share_norm:
      if (stage + 1 < shape.stages) {
        messages.push_back({MessageKind::norm_total, stage, stage + 1});
      }
      break;
    case OpKind::tie_receive:
    case OpKind::update:
      break;
  }
  return messages;
}

void check(const Shape& shape, const OpLists& lists) {
  check_complete(shape, lists);
  std::set<Message> arrived;
  std::vector<std::size_t> position(lists.size(), 0);
  const auto ready = [&](int stage, const Op& op) {
    const auto wanted = needs(shape, stage, op);
    return std::all_of(wanted.begin(), wanted.end(),
                       [&](const Message& message) { return arrived.contains(message); });
  };
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::size_t s = 0; s < lists.size(); ++s) {
      const int stage = int(s);
      while (position[s] < lists[s].size() && ready(stage, lists[s][position[s]])) {
        const Op& op = lists[s][position[s]++];
        for (const Message& message : needs(shape, stage, op)) arrived.erase(message);
        for (const Message& message : emits(shape, stage, op)) arrived.insert(message);
        moved = true;
      }
    }
  }
  for (std::size_t s = 0; s < lists.size(); ++s) {
    if (position[s] == lists[s].size()) continue;
    const Op& op = lists[s][position[s]];
    std::string missing;
    for (const Message& message : needs(shape, int(s), op)) {
      if (!arrived.contains(message)) missing = to_string(message);
    }
    throw InputError("schedule", place(int(s), position[s], op) +
                                     ": can never run, it waits for ever for " + missing);
  }
  if (!arrived.empty()) {
    throw InputError("schedule", "nobody takes " + to_string(*arrived.begin()));
  }
}

int peak_in_flight(const std::vector<Op>& ops) {
  int now = 0;
  int peak = 0;
  for (const Op& op : ops) {
    if (op.kind == OpKind::forward) peak = std::max(peak, ++now);
    if (op.kind == OpKind::backward) --now;
  }
  return peak;
}

}  // namespace nebula
