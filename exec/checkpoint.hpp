#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "exec/adamw.hpp"
#include "exec/stage_module.hpp"

namespace nebula {

/// A stage's checkpoints lie in FOLDER/step-000060/stage-1.ckpt: 8 bytes "NEBCKPT1", uint64 length
/// of the manifest, the manifest (JSON: format, version, plan hash, steps done, and of each tensor
/// name, shape, offset and XXH3 checksum), then the tensors as little-endian float32. A file is
/// written beside its place, synced and renamed: it is there whole or not at all.
///
/// Tensors are named by layer, not by stage. Data and schedule follow from the steps done.
struct CheckpointKey {
  std::string folder;
  int stage = 0;
  std::uint64_t plan_hash = 0;
};

/// Throws RunError when the disk does not take it; older checkpoints stay.
void save_checkpoint(const CheckpointKey& key, int steps_done, const StageModule& module,
                     AdamW& optimizer);

/// Steps done by the newest whole checkpoint of the stage, or nothing.
std::optional<int> newest_checkpoint(const CheckpointKey& key);

/// Throws InputError naming the file and tensor that does not fit.
void load_checkpoint(const CheckpointKey& key, int steps_done, StageModule& module,
                     AdamW& optimizer);

}  // namespace nebula
