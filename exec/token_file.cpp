#include "exec/token_file.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/node.hpp"

namespace nebula {
namespace {

constexpr char magic[9] = "NEBTOKEN";

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t bytes_per_token;
  std::uint32_t vocabulary;
  std::uint32_t zero;
  std::uint64_t count;
};
static_assert(sizeof(Header) == 32);

std::span<const std::byte> map_file(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) throw InputError(path, "can't be read: " + std::string(std::strerror(errno)));
  struct stat status {};
  const bool known = fstat(file, &status) == 0 && S_ISREG(status.st_mode);
  const auto size = known ? std::size_t(status.st_size) : 0;
  void* memory = size ? mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
  close(file);
  if (memory == MAP_FAILED) throw InputError(path, "holds no tokens");
  return {static_cast<const std::byte*>(memory), size};
}

}  // namespace

TokenFile::TokenFile(const std::string& path) : path_(path), map_(map_file(path)) {
  const auto fail = [&](const std::string& problem) {
    munmap(const_cast<std::byte*>(map_.data()), map_.size());
    throw InputError(path, problem);
  };
  if (map_.size() < 8 || std::memcmp(map_.data(), magic, 8) != 0) {
    if (map_.size() % 2 != 0) fail("is neither a token file nor bare uint16 ids: its size is odd");
    ids_ = map_.data();
    count_ = std::int64_t(map_.size() / 2);
    return;
  }
  Header header{};
  if (map_.size() < sizeof header) fail("is truncated inside its header");
  std::memcpy(&header, map_.data(), sizeof header);
  if (header.version != 1) {
    fail("has version " + std::to_string(header.version) + ", this program reads version 1");
  }
  if (header.bytes_per_token != 2 && header.bytes_per_token != 4) {
    fail("has " + std::to_string(header.bytes_per_token) + " bytes a token, expected 2 or 4");
  }
  const std::size_t content = map_.size() - sizeof header;
  if (header.count == 0) fail("holds no tokens");
  if (header.count != content / header.bytes_per_token || content % header.bytes_per_token != 0) {
    fail("is truncated: its header promises " + std::to_string(header.count) + " tokens, " +
         std::to_string(content / header.bytes_per_token) + " are there");
  }
  ids_ = map_.data() + sizeof header;
  bytes_per_token_ = int(header.bytes_per_token);
  count_ = std::int64_t(header.count);
  vocabulary_ = int(header.vocabulary);
}

TokenFile::TokenFile(TokenFile&& other) noexcept
    : path_(std::move(other.path_)),
      map_(std::exchange(other.map_, {})),
      ids_(other.ids_),
      bytes_per_token_(other.bytes_per_token_),
      count_(other.count_),
      vocabulary_(other.vocabulary_) {}

TokenFile::~TokenFile() {
  if (!map_.empty()) munmap(const_cast<std::byte*>(map_.data()), map_.size());
}

std::int64_t TokenFile::operator[](std::int64_t index) const {
  if (bytes_per_token_ == 2) {
    std::uint16_t id = 0;
    std::memcpy(&id, ids_ + 2 * index, sizeof id);
    return id;
  }
  std::uint32_t id = 0;
  std::memcpy(&id, ids_ + 4 * index, sizeof id);
  return id;
}

std::uint64_t TokenFile::fingerprint() const {
  std::uint64_t hash = 14695981039346656037ULL ^ std::uint64_t(count_);
  const std::int64_t stride = std::max<std::int64_t>(1, count_ / 4096);
  for (std::int64_t i = 0; i < count_; i += stride) {
    hash = (hash ^ std::uint64_t((*this)[i])) * 1099511628211ULL;
  }
  return hash;
}

void write_token_file(const std::string& path, std::span<const int> ids, int vocabulary) {
  Header header{};
  std::memcpy(header.magic, magic, 8);
  header.version = 1;
  header.bytes_per_token = vocabulary <= 65536 ? 2 : 4;
  header.vocabulary = std::uint32_t(vocabulary);
  header.count = ids.size();
  std::string text(sizeof header + ids.size() * header.bytes_per_token, '\0');
  std::memcpy(text.data(), &header, sizeof header);
  char* out = text.data() + sizeof header;
  for (const int id : ids) {
    const auto wide = std::uint32_t(id);
    std::memcpy(out, &wide, header.bytes_per_token);
    out += header.bytes_per_token;
  }
  write_file(path, text);
}

}  // namespace nebula
