#include "planner/space.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/error.hpp"

namespace nebula {
namespace {

// Splits of a number of stages are cut to the best balanced, so that about so many candidates are
// left: some seconds of bounds.
constexpr std::size_t most_candidates = 150000;
constexpr std::size_t least_splits = 4;
constexpr std::size_t most_splits = 200;
constexpr int most_stages = 16;

int device_count(const Cluster& cluster) {
  int count = 0;
  for (const Cloud& cloud : cluster.clouds) {
    for (const DeviceGroup& group : cloud.devices) count += group.count;
  }
  return count;
}

bool joined(const Cluster& cluster, const std::string& a, const std::string& b) {
  return a == b || (cluster.find_link(a, b) && cluster.find_link(b, a));
}

// The slots of `count` stages in a cloud, its kinds of device in the file's order.
std::vector<Slot> slots_of(const Cloud& cloud, int count) {
  std::vector<Slot> slots;
  for (const DeviceGroup& group : cloud.devices) {
    for (int i = 0; i < group.count && int(slots.size()) < count; ++i) {
      slots.push_back({cloud.name, group.kind});
    }
  }
  return slots;
}

std::vector<CodecSettings> only(const std::vector<CodecSettings>& list, const std::string& name) {
  if (name.empty()) return list;
  for (const CodecSettings& codec : list) {
    if (codec.name == name) return {codec};
  }
  CodecSettings codec;
  codec.name = std::string(codec_info(name).name);
  return {codec};
}

double binomial(int n, int k) {
  double result = 1;
  for (int i = 1; i <= k; ++i) result *= double(n - k + i) / i;
  return std::round(result);
}

using Split = std::vector<int>;

// Splits whose most loaded stage has at most `limit` work, with that work. work[l] is the sum over
// the layers before l.
std::vector<std::pair<double, Split>> splits_within(const std::vector<double>& work, int stages,
                                                    double limit) {
  const int layers = int(work.size()) - 1;
  std::vector<std::pair<double, Split>> found;
  Split firsts{0};
  const std::function<void(double)> extend = [&](double largest) {
    const int start = firsts.back();
    const int left = stages - int(firsts.size());
    const double rest = work.back() - work[std::size_t(start)];
    if (rest > (left + 1) * limit * (1 + 1e-12)) return;
    if (left == 0) {
      found.emplace_back(std::max(largest, rest), firsts);
      return;
    }
    for (int next = start + 1; next + left <= layers; ++next) {
      const double own = work[std::size_t(next)] - work[std::size_t(start)];
      if (own > limit * (1 + 1e-12)) break;
      firsts.push_back(next);
      extend(std::max(largest, own));
      firsts.pop_back();
    }
  };
  extend(0);
  return found;
}

}  // namespace

Space::Space(const Cluster& cluster, const Model& model, const Job& job, const Costs& costs,
             const Pins& pins)
    : pins_(pins),
      forward_codecs_(only(job.activation_codecs, pins.codec)),
      backward_codecs_(only(job.gradient_codecs, pins.codec)) {
  if (job.sequence_length > model.max_positions) {
    throw InputError("", "the job's sequence_length of " + std::to_string(job.sequence_length) +
                             " is more than the model's " + std::to_string(model.max_positions) +
                             " positions");
  }
  if (pins.micro_batches > 0 && job.global_batch % pins.micro_batches != 0) {
    throw InputError("--micro-batches", std::to_string(pins.micro_batches) +
                                            " do not divide the global batch of " +
                                            std::to_string(job.global_batch));
  }
  base_.cluster = cluster;
  base_.model = model;
  base_.job = job;
  const int most = std::min({device_count(cluster), model.layer_count(), most_stages});
  if (pins.stages > most) {
    throw InputError(
        "--stages", "there are devices and layers for at most " + std::to_string(most) + " stages");
  }
  splits_.resize(std::size_t(most) + 1);
  const auto wanted = [&](int stages) { return pins.stages == 0 || pins.stages == stages; };
  for (int stages = 1; stages <= most; ++stages) {
    if (wanted(stages)) add_placements(stages);
  }
  const std::size_t keep = std::clamp(most_candidates / std::max<std::size_t>(1, other_choices()),
                                      least_splits, most_splits);
  for (int stages = 1; stages <= most; ++stages) {
    if (wanted(stages)) add_splits(stages, costs, keep);
  }
  for (int placement = 0; placement < int(placements_.size()); ++placement) {
    add_candidates(placement);
  }
  if (candidates_.empty()) {
    throw InputError("", "no plan meets the options: are the clouds linked in both directions?");
  }
}

void Space::add_placements(int stages) {
  const auto& clouds = base_.cluster.clouds;
  std::vector<Slot> current;
  std::vector<bool> used(clouds.size(), false);
  const std::function<void()> extend = [&] {
    const int left = stages - int(current.size());
    if (left == 0) {
      const bool ends_meet = !base_.model.tied_embeddings ||
                             joined(base_.cluster, current.front().cloud, current.back().cloud);
      if (ends_meet) placements_.push_back(current);
      return;
    }
    for (std::size_t c = 0; c < clouds.size(); ++c) {
      if (used[c]) continue;
      if (!current.empty() && !joined(base_.cluster, current.back().cloud, clouds[c].name))
        continue;
      used[c] = true;
      for (int count = 1; count <= left; ++count) {
        const auto slots = slots_of(clouds[c], count);
        if (int(slots.size()) < count) break;
        current.insert(current.end(), slots.begin(), slots.end());
        extend();
        current.resize(current.size() - slots.size());
      }
      used[c] = false;
    }
  };
  extend();
}

void Space::add_splits(int stages, const Costs& costs, std::size_t keep) {
  const int layers = base_.model.layer_count();
  // Layer work on any device serves to judge balance.
  const DeviceCosts& device = costs.devices.begin()->second;
  std::vector<double> work{0};
  for (int layer = 0; layer < layers; ++layer) {
    const auto& cost = device.layers.at(std::string(to_string(layer_kind(base_.model, layer))));
    work.push_back(work.back() + cost.forward_s.at(1) + cost.backward_s.at(1));
  }
  // Enumerate within a limit on the most loaded stage that grows until enough are found: all splits
  // of a deep model over many stages would take for ever.
  std::vector<std::pair<double, std::vector<int>>> found;
  for (double limit = work.back() / stages;; limit *= 1.1) {
    found = splits_within(work, stages, std::min(limit, work.back()));
    if (found.size() >= keep || limit >= work.back()) break;
  }
  std::sort(found.begin(), found.end());
  if (found.size() > keep) found.resize(keep);
  dropped_splits_ += binomial(layers - 1, stages - 1) - double(found.size());
  for (auto& [largest, split] : found) splits_[std::size_t(stages)].push_back(std::move(split));
}

std::vector<int> Space::depths(const Shape& shape) const {
  std::vector<int> result;
  if (shape.stages == 1) return {0};
  if (pins_.schedule != "1f1b") result.push_back(-1);
  if (pins_.schedule == "gpipe") return result;
  // Doubling: beyond all micro-batches in flight at stage 0, nothing changes.
  for (int extra = 0;; extra = extra == 0 ? 1 : 2 * extra) {
    result.push_back(extra);
    if (1 + extra + 1 >= shape.micro_batches) break;
  }
  return result;
}

std::vector<Candidate> Space::choices(int placement) const {
  const int stages = int(placements_[std::size_t(placement)].size());
  const int forward = stages > 1 ? int(forward_codecs_.size()) : 1;
  const int backward = stages > 1 ? int(backward_codecs_.size()) : 1;
  std::vector<Candidate> result;
  for (int size = 1; size <= base_.job.global_batch; ++size) {
    if (base_.job.global_batch % size != 0) continue;
    const Shape shape{stages, base_.job.global_batch / size};
    if (pins_.micro_batches > 0 && shape.micro_batches != pins_.micro_batches) continue;
    for (const int extra : depths(shape)) {
      for (int f = 0; f < forward; ++f) {
        for (int b = 0; b < backward; ++b) result.push_back({placement, 0, size, extra, f, b});
      }
    }
  }
  return result;
}

std::size_t Space::other_choices() const {
  std::size_t count = 0;
  for (int placement = 0; placement < int(placements_.size()); ++placement) {
    count += choices(placement).size();
  }
  return count;
}

void Space::add_candidates(int placement) {
  const std::size_t stages = placements_[std::size_t(placement)].size();
  for (Candidate candidate : choices(placement)) {
    for (int split = 0; split < int(splits_[stages].size()); ++split) {
      candidate.split = split;
      candidates_.push_back(candidate);
    }
  }
}

Plan Space::plan(const Candidate& candidate) const {
  Plan plan = base_;
  const auto& slots = placements_[std::size_t(candidate.placement)];
  const auto& firsts = splits_[slots.size()][std::size_t(candidate.split)];
  for (std::size_t s = 0; s < slots.size(); ++s) {
    StagePlan stage;
    stage.cloud = slots[s].cloud;
    stage.device = slots[s].device;
    stage.threads = plan.cluster.find_device(stage.device)->threads;
    stage.first_layer = firsts[s];
    stage.last_layer = s + 1 < firsts.size() ? firsts[s + 1] : plan.model.layer_count();
    plan.stages.push_back(stage);
    if (s == 0) continue;
    BoundaryPlan boundary;
    boundary.from = int(s) - 1;
    boundary.to = int(s);
    boundary.forward = forward_codecs_[std::size_t(candidate.forward_codec)];
    boundary.backward = backward_codecs_[std::size_t(candidate.backward_codec)];
    plan.boundaries.push_back(boundary);
  }
  plan.micro_batch = candidate.micro_batch;
  plan.micro_batches = plan.job.global_batch / candidate.micro_batch;
  plan.schedule = candidate.extra < 0 ? gpipe() : one_f_one_b(plan.shape(), candidate.extra);
  return plan;
}

}  // namespace nebula
