#include "exec/batches.hpp"

#include <vector>

#include "core/error.hpp"

namespace nebula {
namespace {

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

// Counter-based: no state to save, none to get out of step.
std::uint64_t draw(std::uint64_t seed, int step, int sequence) {
  const std::uint64_t position = (std::uint64_t(step) << 32) | std::uint32_t(sequence);
  return mix(mix(seed + 0x9E3779B97F4A7C15ULL) + position * 0x9E3779B97F4A7C15ULL);
}

void check_ids(const TokenFile& file, const Model& model) {
  if (file.vocabulary() > model.vocabulary) {
    throw InputError(file.path(), "is of a vocabulary of " + std::to_string(file.vocabulary()) +
                                      ", the model has " + std::to_string(model.vocabulary));
  }
  if (file.vocabulary() > 0) return;
  for (std::int64_t i = 0; i < file.count(); ++i) {
    if (file[i] < model.vocabulary) continue;
    throw InputError(file.path(), "token " + std::to_string(i) + " is " + std::to_string(file[i]) +
                                      ", the model's vocabulary has " +
                                      std::to_string(model.vocabulary));
  }
}

}  // namespace

Batches::Batches(TokenFile file, const Job& job, const Model& model)
    : file_(std::move(file)), seed_(job.seed), length_(job.sequence_length) {
  if (file_.count() < length_ + 1) {
    throw InputError(file_.path(), "holds " + std::to_string(file_.count()) +
                                       " tokens, fewer than one sequence of " +
                                       std::to_string(length_) + " and its next token");
  }
  check_ids(file_, model);
}

Batch Batches::training(int step, int first, int n) const {
  const auto choices = std::uint64_t(file_.count() - length_);
  std::vector<std::int64_t> starts;
  for (int i = 0; i < n; ++i) {
    starts.push_back(std::int64_t(draw(seed_, step, first + i) % choices));
  }
  return read(starts);
}

Batch Batches::heldout(int first, int n, int total) const {
  const std::int64_t choices = file_.count() - length_;
  std::vector<std::int64_t> starts;
  for (int i = first; i < first + n; ++i) starts.push_back(choices * i / total);
  return read(starts);
}

Batch Batches::read(std::span<const std::int64_t> starts) const {
  const auto n = std::int64_t(starts.size());
  Batch batch{torch::empty({n, length_}, torch::kInt64), torch::empty({n, length_}, torch::kInt64)};
  auto* inputs = batch.inputs.data_ptr<std::int64_t>();
  auto* targets = batch.targets.data_ptr<std::int64_t>();
  for (const std::int64_t start : starts) {
    for (int i = 0; i < length_; ++i) {
      *inputs++ = file_[start + i];
      *targets++ = file_[start + i + 1];
    }
  }
  return batch;
}

}  // namespace nebula
