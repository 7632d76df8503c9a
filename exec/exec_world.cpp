#include "exec/exec_world.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "exec/tensor_codec.hpp"

namespace nebula {
namespace {

bool is_report(const Message& message) {
  return message.kind == MessageKind::norm_partial || message.kind == MessageKind::norm_total;
}

}  // namespace

void ExecWorld::begin(int step, Batch batch, bool evaluating) {
  const double start_s = parts_.clock.now();
  step_ = step;
  evaluating_ = evaluating;
  batch_ = std::move(batch);
  loss_sum_ = 0;
  busy_s_ = 0;
  received_bytes_ = 0;
  incoming_ = {};
  if (parts_.module.last_stage()) {
    valid_tokens_ = valid_tokens(batch_.targets, parts_.plan.job.ignored_token);
  }
  if (evaluating) return;
  parts_.optimizer.clear_gradients();
  Event prepare{.kind = EventKind::prepare, .step = step, .start_s = start_s};
  prepare.end_s = parts_.clock.now();
  record(prepare);
}

void ExecWorld::begin_step(int step, Batch batch) {
  sequences_ = parts_.plan.job.global_batch;
  begin(step, std::move(batch), false);
}

void ExecWorld::begin_evaluation(int step, Batch batch, int sequences) {
  sequences_ = sequences;
  begin(step, std::move(batch), true);
}

void ExecWorld::record(Event event) {
  event.stage = parts_.stage;
  const bool works = event.kind != EventKind::wait && event.kind != EventKind::transfer;
  if (works) busy_s_ += event.seconds();
  if (!evaluating_) parts_.sink.record(event);
}

Event ExecWorld::event(EventKind kind, const Message& message, double start_s) const {
  Event event{.kind = kind, .step = step_};
  event.peer = message.from == parts_.stage ? message.to : message.from;
  event.message = message.kind;
  event.micro_batch = message.micro_batch;
  event.start_s = start_s;
  event.end_s = parts_.clock.now();
  return event;
}

void ExecWorld::finish_device() const {
  if (parts_.module.device().is_cuda()) torch::cuda::synchronize();
}

const CodecSettings& ExecWorld::codec(const Message& message) const {
  const auto& boundaries = parts_.plan.boundaries;
  switch (message.kind) {
    case MessageKind::activation:
      return boundaries[std::size_t(message.from)].forward;
    case MessageKind::gradient:
      return boundaries[std::size_t(message.to)].backward;
    default:
      return parts_.plan.tied;
  }
}

std::vector<std::int64_t> ExecWorld::shape(const Message& message) const {
  if (message.kind == MessageKind::tied_gradient) {
    return parts_.module.tied_table().sizes().vec();
  }
  const int per_micro_batch = parts_.plan.micro_batch;
  const int n = std::min(per_micro_batch, sequences_ - message.micro_batch * per_micro_batch);
  return {n, parts_.plan.job.sequence_length, parts_.plan.model.width};
}

torch::Tensor ExecWorld::rows(const torch::Tensor& batch, int micro_batch) const {
  const std::int64_t first = std::int64_t{micro_batch} * parts_.plan.micro_batch;
  return batch.slice(0, first, first + parts_.plan.micro_batch).to(parts_.module.device());
}

void ExecWorld::receive(const Message& message) {
  const double start_s = parts_.clock.now();
  const Received received = parts_.transport->receive(step_, message);
  record(event(EventKind::wait, message, start_s));
  received_bytes_ += double(received.wire_bytes);
  Event transfer = event(EventKind::transfer, message, parts_.clock.seconds(received.sent_ns));
  transfer.end_s = parts_.clock.seconds(received.arrived_ns);
  transfer.bytes = double(received.wire_bytes);
  record(transfer);
  if (is_report(message)) {
    incoming_ = step_report(received.payload, to_string(message));
    return;
  }
  const double decode_s = parts_.clock.now();
  received_[message] = decode_tensor(codec(message), received.payload, shape(message),
                                     parts_.module.device(), to_string(message));
  finish_device();
  record(event(EventKind::decode, message, decode_s));
}

const torch::Tensor& ExecWorld::outgoing(const Message& message) {
  switch (message.kind) {
    case MessageKind::activation:
      return in_flight_.at(message.micro_batch).output;
    case MessageKind::gradient:
      return input_gradients_.at(message.micro_batch);
    default:
      return parts_.module.tied_table().grad();
  }
}

void ExecWorld::send(const Message& message) {
  if (is_report(message)) {
    parts_.transport->send(step_, message, to_bytes(report_));
    return;
  }
  const double start_s = parts_.clock.now();
  auto code = encode_tensor(codec(message), outgoing(message), to_string(message));
  record(event(EventKind::encode, message, start_s));
  parts_.transport->send(step_, message, std::move(code));
  if (message.kind == MessageKind::gradient) input_gradients_.erase(message.micro_batch);
  if (evaluating_) in_flight_.erase(message.micro_batch);
}

void ExecWorld::compute(const Op& op) {
  Event event{.kind = EventKind::op, .step = step_, .op = op, .micro_batch = op.micro_batch};
  event.start_s = parts_.clock.now();
  switch (op.kind) {
    case OpKind::forward:
      forward(op.micro_batch);
      break;
    case OpKind::backward:
      backward(op.micro_batch);
      break;
    case OpKind::tie_send:
      break;
    case OpKind::tie_receive:
      add_tied_gradient();
      break;
    case OpKind::sum_norm:
      sum_norm();
      break;
    case OpKind::share_norm:
      report_ = incoming_;
      break;
    case OpKind::update:
      update();
      break;
  }
  finish_device();
  event.end_s = parts_.clock.now();
  record(event);
}

void ExecWorld::forward(int micro_batch) {
  const torch::AutoGradMode gradients(!evaluating_);
  InFlight work;
  if (parts_.module.first_stage()) {
    work.input = rows(batch_.inputs, micro_batch);
  } else {
    const Message message{MessageKind::activation, parts_.stage - 1, parts_.stage, micro_batch, 0};
    work.input = std::move(received_.extract(message).mapped());
    work.input.set_requires_grad(!evaluating_);
  }
  work.output = parts_.module.forward(work.input, parts_.plan.job.precision);
  if (parts_.module.last_stage()) {
    const torch::Tensor loss = parts_.module.loss_sum(
        work.output, rows(batch_.targets, micro_batch), parts_.plan.job.ignored_token);
    loss_sum_ += loss.item<double>();
    work.output = loss / double(std::max<std::int64_t>(valid_tokens_, 1));
    if (evaluating_) return;
  }
  in_flight_[micro_batch] = std::move(work);
}

void ExecWorld::backward(int micro_batch) {
  InFlight work = std::move(in_flight_.extract(micro_batch).mapped());
  if (parts_.module.last_stage()) {
    work.output.backward();
  } else {
    const Message message{MessageKind::gradient, parts_.stage + 1, parts_.stage, micro_batch, 0};
    work.output.backward(received_.extract(message).mapped());
  }
  if (!parts_.module.first_stage()) input_gradients_[micro_batch] = work.input.grad();
}

// Both ends add the same two tensors, so their copies of the table stay equal to the bit.
void ExecWorld::add_tied_gradient() {
  const int other = parts_.stage == 0 ? parts_.plan.stage_count() - 1 : 0;
  const Message message{MessageKind::tied_gradient, other, parts_.stage, 0, 0};
  torch::Tensor own = parts_.module.tied_table().grad();
  const CodecSettings& settings = parts_.plan.tied;
  if (!codec_info(settings.name).exact) {
    // The other end has what the codec made of our gradient, so that is what we add, too.
    const auto code = encode_tensor(settings, own, to_string(message));
    own.copy_(decode_tensor(settings, code, own.sizes(), own.device(), to_string(message)));
  }
  own.add_(received_.extract(message).mapped());
}

void ExecWorld::sum_norm() {
  report_ = incoming_;
  report_.squared_norm += parts_.optimizer.squared_norm();
  report_.busy_s += busy_s_;
  report_.stop |= std::uint64_t(parts_.stop.load());
  if (parts_.module.last_stage()) {
    report_.loss = loss_sum_ / double(std::max<std::int64_t>(valid_tokens_, 1));
  }
}

void ExecWorld::update() {
  const double norm = std::sqrt(report_.squared_norm);
  if (!std::isfinite(norm) || !std::isfinite(report_.loss)) {
    throw RunError("step " + std::to_string(step_) + ": loss " + std::to_string(report_.loss) +
                   ", gradient norm " + std::to_string(norm) +
                   ": the training diverged; lower the learning rate");
  }
  const Job& job = parts_.plan.job;
  parts_.optimizer.update(step_, job.steps, clip_scale(job.optimizer, norm));
}

}  // namespace nebula
