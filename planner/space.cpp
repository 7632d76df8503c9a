#include "planner/space.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "core/error.hpp"

namespace nebula {
namespace {

// More splits than this are cut to the best balanced; the full search is bounded otherwise.
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
  for (int stages = 1; stages <= most; ++stages) {
    if (pins.stages > 0 && pins.stages != stages) continue;
    add_splits(stages, costs);
    add_placements(stages);
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

void Space::add_splits(int stages, const Costs& costs) {
  const int layers = base_.model.layer_count();
  // Layer work on any device serves to judge balance.
  const DeviceCosts& device = costs.devices.begin()->second;
  std::vector<double> work{0};
  for (int layer = 0; layer < layers; ++layer) {
    const auto& cost = device.layers.at(std::string(to_string(layer_kind(base_.model, layer))));
    work.push_back(work.back() + cost.forward_s.at(1) + cost.backward_s.at(1));
  }
  std::vector<std::pair<double, std::vector<int>>> found;
  std::vector<int> firsts{0};
  long long seen = 0;
  const std::function<void(double)> extend = [&](double largest) {
    const int start = firsts.back();
    if (int(firsts.size()) == stages) {
      ++seen;
      found.emplace_back(std::max(largest, work.back() - work[std::size_t(start)]), firsts);
      // Keep memory bounded while enumerating.
      if (found.size() >= 64 * most_splits) {
        std::nth_element(found.begin(), found.begin() + most_splits, found.end());
        found.resize(most_splits);
      }
      return;
    }
    const int room = stages - int(firsts.size());
    for (int next = start + 1; next + room <= layers; ++next) {
      const double own = work[std::size_t(next)] - work[std::size_t(start)];
      firsts.push_back(next);
      extend(std::max(largest, own));
      firsts.pop_back();
    }
  };
  extend(0);
  std::sort(found.begin(), found.end());
  if (found.size() > most_splits) found.resize(most_splits);
  dropped_splits_ += seen - static_cast<long long>(found.size());
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

void Space::add_candidates(int placement) {
  const int stages = int(placements_[std::size_t(placement)].size());
  const auto& splits = splits_[std::size_t(stages)];
  const int forward = stages > 1 ? int(forward_codecs_.size()) : 1;
  const int backward = stages > 1 ? int(backward_codecs_.size()) : 1;
  for (int size = 1; size <= base_.job.global_batch; ++size) {
    if (base_.job.global_batch % size != 0) continue;
    const Shape shape{stages, base_.job.global_batch / size};
    if (pins_.micro_batches > 0 && shape.micro_batches != pins_.micro_batches) continue;
    for (const int extra : depths(shape)) {
      for (int split = 0; split < int(splits.size()); ++split) {
        for (int f = 0; f < forward; ++f) {
          for (int b = 0; b < backward; ++b) {
            candidates_.push_back({placement, split, size, extra, f, b});
          }
        }
      }
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
