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

  // One forward and backward of n sequences, as ExecWorld does them.
  void run(int n, LayerSample& sample) {
    const auto device = module_.device();
    const bool first = subject_.kind == LayerKind::embedding;
    const bool last = subject_.kind == LayerKind::head;
    const torch::Tensor ids =
        torch::randint(model_.vocabulary, {n, job_.sequence_length}, torch::kInt64).to(device);
    torch::Tensor input =
        first ? ids : torch::randn({n, job_.sequence_length, model_.width}).to(device);
    if (!first) input.set_requires_grad(true);
    const torch::Tensor gradient = torch::randn({n, job_.sequence_length, model_.width}).to(device);
    const double before_bytes = allocated_bytes();
    double start = seconds_now();
    torch::Tensor output = module_.forward(input, job_.precision);
    if (last) output = module_.loss_sum(output, ids, -1) / double(ids.numel());
    finish();
    sample.forward_s.push_back(seconds_now() - start);
    sample.saved_bytes.push_back(std::max(0.0, allocated_bytes() - before_bytes));
    start = seconds_now();
    if (last) {
      output.backward();
    } else {
      output.backward(gradient);
    }
    finish();
    sample.backward_s.push_back(seconds_now() - start);
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

// Sizes in turn rather than one after the other: what else the machine does meanwhile then touches
// all of them alike.
LayerCosts measure_layer(const Model& model, const Job& job, const Subject& subject, int threads,
                         const ProfileOptions& options) {
  Bench bench(model, job, subject, threads);
  const std::vector<int> sizes = micro_batches(job, options);
  std::vector<LayerSample> samples(sizes.size());
  std::vector<double> updates;
  // The first round meets memory that nobody has touched.
  for (int round = -1; round < options.repetitions; ++round) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      LayerSample unused;
      bench.run(sizes[i], round < 0 ? unused : samples[i]);
    }
    const double update_s = bench.update();
    if (round >= 0) updates.push_back(update_s);
  }
  LayerCosts costs;
  const double layers = bench.layers();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto add = [&](Curve& curve, const std::vector<double>& values) {
      curve.sequences.push_back(sizes[i]);
      curve.values.push_back(median(values) / layers);
    };
    add(costs.forward_s, samples[i].forward_s);
    add(costs.backward_s, samples[i].backward_s);
    add(costs.saved_bytes, samples[i].saved_bytes);
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
    found.layers[kind] = measure_layer(model, job, subject, device->threads, options);
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
