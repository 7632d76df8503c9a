#include "exec/checkpoint.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <vector>

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include "core/error.hpp"
#include "core/fields.hpp"

namespace nebula {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view magic = "NEBCKPT1";

struct NamedTensor {
  std::string name;
  torch::Tensor tensor;
};

std::vector<NamedTensor> state_tensors(const StageModule& module, AdamW& optimizer) {
  std::vector<NamedTensor> tensors;
  const auto& parameters = module.parameters();
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    tensors.push_back({parameters[i].name, parameters[i].tensor.detach()});
    tensors.push_back({parameters[i].name + ".first_moment", optimizer.first_moments()[i]});
    tensors.push_back({parameters[i].name + ".second_moment", optimizer.second_moments()[i]});
  }
  return tensors;
}

fs::path step_folder(const CheckpointKey& key, int steps_done) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "step-%06d", steps_done);
  return fs::path(key.folder) / name.data();
}

fs::path stage_file(const CheckpointKey& key, int steps_done) {
  return step_folder(key, steps_done) / ("stage-" + std::to_string(key.stage) + ".ckpt");
}

std::string hex(std::uint64_t value) {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value));
  return text.data();
}

std::string manifest(const CheckpointKey& key, int steps_done,
                     const std::vector<NamedTensor>& tensors) {
  NodeList list;
  std::int64_t offset = 0;
  for (const auto& [name, tensor] : tensors) {
    NodeList shape;
    for (const std::int64_t size : tensor.sizes()) shape.push_back({size, 0});
    const auto bytes = std::size_t(tensor.nbytes());
    list.push_back(TableWriter()
                       .set("name", name)
                       .set("shape", Node{std::move(shape), 0})
                       .set("offset_bytes", offset)
                       .set("xxh3", hex(XXH3_64bits(tensor.data_ptr(), bytes)))
                       .node());
    offset += std::int64_t(bytes);
  }
  return to_json(TableWriter()
                     .set("format", "nebula-checkpoint")
                     .set("version", 1)
                     .set("plan_hash", hex(key.plan_hash))
                     .set("steps_done", steps_done)
                     .set("tensors", Node{std::move(list), 0})
                     .node());
}

class SyncedFile {
 public:
  explicit SyncedFile(fs::path path)
      : path_(std::move(path)),
        file_(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    if (file_ < 0) fail();
  }
  ~SyncedFile() {
    if (file_ >= 0) ::close(file_);
  }
  SyncedFile(const SyncedFile&) = delete;
  SyncedFile& operator=(const SyncedFile&) = delete;

  void write(const void* data, std::size_t size) {
    const char* at = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t written = ::write(file_, at, size);
      if (written < 0 && errno != EINTR) fail();
      if (written <= 0) continue;
      at += written;
      size -= std::size_t(written);
    }
  }
  void finish(const fs::path& place) {
    if (fsync(file_) != 0) fail();
    if (rename(path_.c_str(), place.c_str()) != 0) fail();
    const int folder = open(place.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
      fsync(folder);
      ::close(folder);
    }
  }

 private:
  [[noreturn]] void fail() const {
    const std::string why = std::strerror(errno);
    unlink(path_.c_str());
    throw RunError("checkpoint " + path_.string() + " can't be written: " + why);
  }

  fs::path path_;
  int file_;
};

// Splits a checkpoint file into its manifest and its tensors' bytes.
std::pair<Node, std::string_view> split(const std::string& text, const std::string& path) {
  std::uint64_t length = 0;
  const std::size_t start = magic.size() + sizeof length;
  if (text.size() < start || !text.starts_with(magic)) {
    throw InputError(path, "is not a checkpoint");
  }
  std::memcpy(&length, text.data() + magic.size(), sizeof length);
  if (length > text.size() - start) throw InputError(path, "is truncated");
  return {parse_json(std::string_view(text).substr(start, length), path),
          std::string_view(text).substr(start + length)};
}

void load_tensor(Fields& entry, std::string_view data, const NamedTensor& target) {
  const auto offset = std::size_t(entry.integer("offset_bytes", 0));
  const std::string checksum = entry.text("xxh3");
  const auto shape = entry.counts("shape", 0);
  entry.finish();
  const std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  if (target.tensor.sizes() != torch::IntArrayRef(sizes)) {
    entry.fail("shape", "of " + target.name + " is not the model's");
  }
  const auto bytes = std::size_t(target.tensor.nbytes());
  if (offset > data.size() || bytes > data.size() - offset) {
    entry.fail("offset_bytes", "lies beyond the end of the file: it is truncated");
  }
  const char* source = data.data() + offset;
  if (hex(XXH3_64bits(source, bytes)) != checksum) {
    entry.fail("xxh3", "of " + target.name + " does not match its bytes: the file is damaged");
  }
  torch::NoGradGuard no_grad;
  torch::Tensor host = torch::empty(sizes, torch::kFloat32);
  std::memcpy(host.data_ptr(), source, bytes);
  torch::Tensor tensor = target.tensor;
  tensor.copy_(host);
}

}  // namespace

void save_checkpoint(const CheckpointKey& key, int steps_done, const StageModule& module,
                     AdamW& optimizer) {
  std::vector<NamedTensor> tensors = state_tensors(module, optimizer);
  for (NamedTensor& entry : tensors) entry.tensor = entry.tensor.to(torch::kCPU).contiguous();
  const std::string text = manifest(key, steps_done, tensors);
  const fs::path place = stage_file(key, steps_done);
  std::error_code error;
  fs::create_directories(place.parent_path(), error);
  if (error) throw RunError(place.string() + ": " + error.message());
  SyncedFile file(place.string() + ".new");
  const std::uint64_t length = text.size();
  file.write(magic.data(), magic.size());
  file.write(&length, sizeof length);
  file.write(text.data(), text.size());
  for (const NamedTensor& entry : tensors) {
    file.write(entry.tensor.data_ptr(), std::size_t(entry.tensor.nbytes()));
  }
  file.finish(place);
}

std::optional<int> newest_checkpoint(const CheckpointKey& key) {
  std::optional<int> newest;
  std::error_code error;
  for (const auto& folder : fs::directory_iterator(key.folder, error)) {
    const std::string name = folder.path().filename();
    int steps = 0;
    if (!name.starts_with("step-")) continue;
    const auto [end, bad] = std::from_chars(name.data() + 5, name.data() + name.size(), steps);
    if (bad != std::errc{} || end != name.data() + name.size()) continue;
    if (fs::exists(stage_file(key, steps)) && steps > newest.value_or(-1)) newest = steps;
  }
  return newest;
}

void load_checkpoint(const CheckpointKey& key, int steps_done, StageModule& module,
                     AdamW& optimizer) {
  const std::string path = stage_file(key, steps_done);
  const std::string text = read_file(path);
  const auto [node, data] = split(text, path);
  Fields fields(node, path);
  fields.expect_format("nebula-checkpoint", 1);
  if (fields.text("plan_hash") != hex(key.plan_hash)) {
    fields.fail("plan_hash", "is of another plan; resume with the plan that wrote it");
  }
  if (fields.count("steps_done", 0) != steps_done) {
    fields.fail("steps_done", "is not what the folder's name says");
  }
  std::map<std::string, NamedTensor> targets;
  for (NamedTensor& entry : state_tensors(module, optimizer)) targets[entry.name] = entry;
  for (Fields& entry : fields.tables("tensors")) {
    const std::string name = entry.text("name");
    const auto target = targets.find(name);
    if (target == targets.end()) entry.fail("name", "'" + name + "' is not in this stage");
    load_tensor(entry, data, target->second);
    targets.erase(target);
  }
  if (!targets.empty()) fields.fail("tensors", "lack " + targets.begin()->first);
  fields.finish();
}

}  // namespace nebula
