#pragma once

#include <atomic>
#include <map>

#include <torch/torch.h>

#include "core/plan.hpp"
#include "core/schedule.hpp"
#include "core/timeline.hpp"
#include "exec/adamw.hpp"
#include "exec/batches.hpp"
#include "exec/clock.hpp"
#include "exec/stage_module.hpp"
#include "exec/step_report.hpp"
#include "exec/transport.hpp"

namespace nebula {

/// What a world needs; all outlive it. The transport is null when there is one stage.
struct WorldParts {
  const Plan& plan;
  int stage;
  StageModule& module;
  AdamW& optimizer;
  Transport* transport;
  EventSink& sink;
  Clock clock;
  /// Set by a signal handler.
  const std::atomic<bool>& stop;
};

/// The real World of core/run_stage.hpp: libtorch computes, the transport sends.
///
/// Losses are sums over a micro-batch divided by the valid tokens of the whole step, so that
/// gradients simply add up whatever the number of micro-batches.
class ExecWorld {
 public:
  explicit ExecWorld(const WorldParts& parts) : parts_(parts) {}

  /// `batch` is the step's whole batch; undefined tensors on middle stages.
  void begin_step(int step, Batch batch);
  /// Forward passes without gradients on `batch`, whose messages carry the number `step`.
  void begin_evaluation(int step, Batch batch, int sequences);

  void receive(const Message& message);
  void compute(const Op& op);
  void send(const Message& message);

  /// Of the step that ended with its update; every stage has the same.
  const StepReport& report() const { return report_; }
  /// Sum of the losses of the evaluated tokens, and their number; on the last stage.
  double evaluated_loss() const { return loss_sum_; }
  std::int64_t evaluated_tokens() const { return valid_tokens_; }
  /// Bytes received from the previous stage and from the next one in this step.
  double received_bytes() const { return received_bytes_; }

 private:
  struct InFlight {
    torch::Tensor input;
    torch::Tensor output;
  };

  void begin(int step, Batch batch, bool evaluating);
  void forward(int micro_batch);
  void backward(int micro_batch);
  void add_tied_gradient();
  void sum_norm();
  void update();
  torch::Tensor rows(const torch::Tensor& batch, int micro_batch) const;
  const CodecSettings& codec(const Message& message) const;
  std::vector<std::int64_t> shape(const Message& message) const;
  const torch::Tensor& outgoing(const Message& message);
  Event event(EventKind kind, const Message& message, double start_s) const;
  void record(Event event);
  void finish_device() const;

  WorldParts parts_;
  int step_ = 0;
  bool evaluating_ = false;
  int sequences_ = 0;
  Batch batch_;
  std::int64_t valid_tokens_ = 0;
  double loss_sum_ = 0;
  double busy_s_ = 0;
  double received_bytes_ = 0;
  std::map<int, InFlight> in_flight_;
  std::map<Message, torch::Tensor> received_;
  std::map<int, torch::Tensor> input_gradients_;
  StepReport incoming_;
  StepReport report_;
};

}  // namespace nebula
