#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/costs.hpp"
#include "core/plan.hpp"

namespace nebula {

/// Choices that the user takes away from the search.
struct Pins {
  int stages = 0;         ///< 0: free
  int micro_batches = 0;  ///< 0: free
  std::string schedule;   ///< "gpipe", "1f1b" or empty
  std::string codec;      ///< for both directions, or empty
};

/// Where a stage runs.
struct Slot {
  std::string cloud;
  std::string device;
  bool operator==(const Slot&) const = default;
};

/// One plan of the space, by indices into it.
struct Candidate {
  int placement = 0;
  int split = 0;
  int micro_batch = 1;
  /// -1: GPipe; otherwise 1F1B deepened by so many a hop.
  int extra = 0;
  int forward_codec = 0;
  int backward_codec = 0;
  bool operator==(const Candidate&) const = default;
};

/// All pipelines over a cluster's clouds: for every number of stages, clouds as contiguous runs in
/// every order that has links, every contiguous split of the layers, micro-batches that divide the
/// global batch, GPipe and 1F1B of doubling depths, and the job's codecs, the same at every
/// boundary.
class Space {
 public:
  /// Throws InputError for a job that does not fit the model or pins that nothing meets.
  Space(const Cluster& cluster, const Model& model, const Job& job, const Costs& costs,
        const Pins& pins);

  const std::vector<Candidate>& candidates() const { return candidates_; }
  /// Complete but for the prediction.
  Plan plan(const Candidate& candidate) const;
  /// Splits left out because there were too many; the best balanced ones stay.
  double dropped_splits() const { return dropped_splits_; }

 private:
  void add_placements(int stages);
  void add_splits(int stages, const Costs& costs, std::size_t keep);
  void add_candidates(int placement);
  /// Everything but the layer split.
  std::vector<Candidate> choices(int placement) const;
  std::size_t other_choices() const;
  std::vector<int> depths(const Shape& shape) const;

  Plan base_;
  Pins pins_;
  std::vector<CodecSettings> forward_codecs_;
  std::vector<CodecSettings> backward_codecs_;
  std::vector<std::vector<Slot>> placements_;
  /// By number of stages: first layers of the stages.
  std::vector<std::vector<std::vector<int>>> splits_;
  std::vector<Candidate> candidates_;
  double dropped_splits_ = 0;
};

}  // namespace nebula
