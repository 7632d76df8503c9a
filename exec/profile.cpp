#include "exec/profile.hpp"

#include <algorithm>
#include <chrono>

#include <malloc.h>

#include "core/error.hpp"
#include "exec/adamw.hpp"
#include "exec/stage_module.hpp"
#include "exec/tensor_codec.hpp"
#include "exec/torch_compat.hpp"

namespace nebula {
namespace {

double seconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double allocated_bytes() {
  return double(mallinfo2().uordblks);
}

struct LayerSample {
  std::vector<double> forward_s;
  std::vector<double> backward_s;
  std::vector<double> saved_bytes;
};

// A layer in the setting it has in a stage: blocks are measured in a row of several, so that they
// find their weights as cold as in training.
struct Subject {
  LayerKind kind;
  int first;
  int last;
};

std::vector<Subject> subjects(const Model& model) {
  const int blocks = std::min(3, model.blocks);
  return {{LayerKind::embedding, 0, 1},
          {LayerKind::block, 1, 1 + blocks},
          {LayerKind::head, model.layer_count() - 1, model.layer_count()}};
}

class Bench {
 public:
  Bench(const Model& model, const Job& job, const Subject& subject, int threads)
      : model_(model),
        job_(job),
        subject_(subject),
        module_(model, subject.first, subject.last, 1, torch_device(threads)),
        optimizer_(job.optimizer, module_.parameters()) {}

  // `count` micro-batches of n sequences: all forward, then all backward, as a stage of a pipeline
  // does them. What a forward saves has left the caches by the time its backward reads it.
  void run(int n, int count, LayerSample& sample) {
    const auto device = module_.device();
    const bool first = subject_.kind == LayerKind::embedding;
    const bool last = subject_.kind == LayerKind::head;
    const torch::Tensor ids =
        torch::randint(model_.vocabulary, {n, job_.sequence_length}, torch::kInt64).to(device);
    const torch::Tensor gradient = torch::randn({n, job_.sequence_length, model_.width}).to(device);
    std::vector<torch::Tensor> inputs;
    for (int i = 0; i < count; ++i) {
      inputs.push_back(first ? ids
                             : torch::randn({n, job_.sequence_length, model_.width}).to(device));
      if (!first) inputs.back().set_requires_grad(true);
    }
    const double before_bytes = allocated_bytes();
    std::vector<torch::Tensor> outputs;
    for (const torch::Tensor& input : inputs) {
      const double start = seconds_now();
      torch::Tensor output = module_.forward(input, job_.precision);
      if (last) output = module_.loss_sum(output, ids, -1) / double(ids.numel());
      finish();
      sample.forward_s.push_back(seconds_now() - start);
      outputs.push_back(std::move(output));
    }
    sample.saved_bytes.push_back(std::max(0.0, allocated_bytes() - before_bytes) / count);
    for (torch::Tensor& output : outputs) {
      const double start = seconds_now();
      output.backward(last ? torch::Tensor() : gradient);
      finish();
      sample.backward_s.push_back(seconds_now() - start);
      output.reset();
    }
  }

  double update() {
    const double start = seconds_now();
    const double norm = optimizer_.squared_norm();
    optimizer_.update(0, job_.steps, clip_scale(job_.optimizer, norm));
    finish();
    return seconds_now() - start;
  }

  int layers() const { return subject_.last - subject_.first; }

 private:
  void finish() const {
    if (module_.device().is_cuda()) torch::cuda::synchronize();
  }

  const Model& model_;
  const Job& job_;
  Subject subject_;
  StageModule module_;
  AdamW optimizer_;
};

std::vector<int> micro_batches(const Job& job, const ProfileOptions& options) {
  const int largest =
      options.largest_micro_batch > 0 ? options.largest_micro_batch : job.global_batch;
  std::vector<int> sizes;
  for (int n = 1; n < largest; n *= 2) sizes.push_back(n);
  sizes.push_back(largest);
  if (sizes.size() == 1) sizes.push_back(2 * largest);
  return sizes;
}

// One size of micro-batch: how many are in flight, and what was measured.
struct Size {
  int sequences = 0;
  int in_flight = 1;
  LayerSample sample;
};

// Sizes that fit into memory, each with as many in flight as a step has, within reason. Runs each
// once, which also touches the memory that the measurements use.
std::vector<Size> sizes_that_fit(Bench& bench, const Job& job, const ProfileOptions& options,
                                 double memory_bytes) {
  constexpr int most_in_flight = 8;
  std::vector<Size> sizes;
  for (const int n : micro_batches(job, options)) {
    // What a size takes grows with it; the first two are measured come what may.
    double saved_bytes = 0;
    if (sizes.size() >= 2) {
      saved_bytes = sizes.back().sample.saved_bytes.back() * n / sizes.back().sequences;
      if (saved_bytes > memory_bytes) break;
    }
    const int wanted = std::clamp(job.global_batch / n, 1, most_in_flight);
    Size size{n, 1, {}};
    bench.run(n, 1, size.sample);
    saved_bytes = std::max(saved_bytes, size.sample.saved_bytes.back());
    size.in_flight = std::clamp(int(memory_bytes / std::max(saved_bytes, 1.0)), 1, wanted);
    LayerSample unused;
    bench.run(n, size.in_flight, unused);
    sizes.push_back(std::move(size));
  }
  for (Size& size : sizes) size.sample = {};
  return sizes;
}

// Sizes in turn rather than one after the other: what else the machine does meanwhile then touches
// all of them alike.
LayerCosts measure_layer(const Model& model, const Job& job, const Subject& subject,
                         const Device& device, const ProfileOptions& options) {
  Bench bench(model, job, subject, device.threads);
  // Half of the memory is for weights, gradients, optimiser and temporary tensors.
  std::vector<Size> sizes = sizes_that_fit(bench, job, options, device.memory_bytes / 2);
  std::vector<double> updates;
  for (int round = 0; round < options.repetitions; ++round) {
    for (Size& size : sizes) bench.run(size.sequences, size.in_flight, size.sample);
    updates.push_back(bench.update());
  }
  LayerCosts costs;
  const double layers = bench.layers();
  for (const Size& size : sizes) {
    const auto add = [&](Curve& curve, const std::vector<double>& values) {
      curve.sequences.push_back(size.sequences);
      curve.values.push_back(median(values) / layers);
    };
    add(costs.forward_s, size.sample.forward_s);
    add(costs.backward_s, size.sample.backward_s);
    add(costs.saved_bytes, size.sample.saved_bytes);
  }
  costs.update_s = median(updates) / layers;
  return costs;
}

// Two sizes give the fixed part and the part by element.
CodecCosts measure_codec(const CodecSettings& settings, int repetitions) {
  const auto time = [&](std::int64_t elements) {
    const torch::Tensor tensor = torch::randn({elements});
    std::vector<double> encode_s;
    std::vector<double> decode_s;
    for (int i = 0; i < repetitions; ++i) {
      const double start = seconds_now();
      const auto code = encode_tensor(settings, tensor, "profile");
      const double middle = seconds_now();
      decode_tensor(settings, code, {elements}, torch::kCPU, "profile");
      encode_s.push_back(middle - start);
      decode_s.push_back(seconds_now() - middle);
    }
    return std::pair(median(encode_s), median(decode_s));
  };
  constexpr std::int64_t small = 1 << 12;
  constexpr std::int64_t large = 1 << 20;
  time(large);
  const auto [encode_small, decode_small] = time(small);
  const auto [encode_large, decode_large] = time(large);
  CodecCosts costs;
  costs.encode_per_element_s = std::max(0.0, encode_large - encode_small) / (large - small);
  costs.decode_per_element_s = std::max(0.0, decode_large - decode_small) / (large - small);
  costs.fixed_s = std::max(0.0, encode_small - small * costs.encode_per_element_s);
  return costs;
}

}  // namespace

Costs profile(const Cluster& cluster, const Model& model, const Job& job,
              const ProfileOptions& options,
              const std::function<void(const std::string&)>& progress) {
  const Device* device = cluster.find_device(options.device);
  if (!device) {
    throw InputError("--device", "the cluster has no kind of device '" + options.device + "'");
  }
  if (job.sequence_length > model.max_positions) {
    throw InputError("--job", "its sequences are longer than the model's " +
                                  std::to_string(model.max_positions) + " positions");
  }
  Costs costs;
  costs.source = "profile";
  costs.model = model.name;
  costs.precision = job.precision;
  costs.sequence_length = job.sequence_length;
  DeviceCosts& found = costs.devices[device->kind];
  found.source = "measured here, " + std::to_string(device->threads) + " threads";
  for (const Subject& subject : subjects(model)) {
    const std::string kind(to_string(subject.kind));
    progress("layer " + kind);
    found.layers[kind] = measure_layer(model, job, subject, *device, options);
  }
  for (const CodecInfo& codec : codecs()) {
    progress("codec " + std::string(codec.name));
    CodecSettings settings;
    settings.name = codec.name;
    found.codecs[settings.name] = measure_codec(settings, options.repetitions);
  }
  return costs;
}

}  // namespace nebula
