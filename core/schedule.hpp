#pragma once

#include <compare>
#include <string>
#include <string_view>
#include <vector>

namespace nebula {

/// What a stage does, in one step. The order of a stage's ops is its schedule; it holds no times
/// and no communication.
enum class OpKind {
  forward,      ///< F: forward of one micro-batch
  backward,     ///< B: backward of one micro-batch, input and weight gradients
  tie_send,     ///< first and last stage of a tied model: hand over the shared gradient
  tie_receive,  ///< ... and add the other stage's
  sum_norm,     ///< add this stage's squared gradient norm to the later stages'
  share_norm,   ///< learn the total norm from the earlier stages
  update,       ///< clip and apply the optimiser
};

struct Op {
  OpKind kind = OpKind::forward;
  int micro_batch = 0;
  int chunk = 0;
  auto operator<=>(const Op&) const = default;
};

/// "F0", "B12", and with more than one chunk a stage "F0.1"; end-of-step ops by name.
std::string to_string(const Op& op);

/// A pipeline: stages 0..stages-1 in a chain, each with `chunks` model parts.
struct Shape {
  int stages = 1;
  int micro_batches = 1;
  int chunks = 1;
  /// First and last stage share the embedding table.
  bool tied = false;
  bool operator==(const Shape&) const = default;
};

enum class MessageKind {
  activation,     ///< forward, to the next stage
  gradient,       ///< backward, to the previous stage
  norm_partial,   ///< squared norm of all later stages, to the previous stage
  norm_total,     ///< over all stages, to the next stage
  tied_gradient,  ///< between first and last stage
};
std::string_view to_string(MessageKind kind);

/// Key of what crosses from one stage to another within a step.
struct Message {
  MessageKind kind = MessageKind::activation;
  int from = 0;
  int to = 0;
  int micro_batch = 0;
  int chunk = 0;
  auto operator<=>(const Message&) const = default;
};
/// "activation 3 from stage 0 to stage 1".
std::string to_string(const Message& message);

/// Messages that must have arrived before the op runs, and those that leave after it.
std::vector<Message> needs(const Shape& shape, int stage, const Op& op);
std::vector<Message> emits(const Shape& shape, int stage, const Op& op);

/// One op list a stage, in order.
using OpLists = std::vector<std::vector<Op>>;

/// Runs all lists without time. Throws InputError that names stage, position and op of what can
/// never run, of a message that nobody takes, or of an op that is missing or stands twice.
void check(const Shape& shape, const OpLists& lists);

/// Most micro-batches (times chunks) between forward and backward at once, a stage.
int peak_in_flight(const std::vector<Op>& ops);

}  // namespace nebula
