#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace nebula {

/// A file of token ids, mapped into memory.
///
/// Layout, little-endian: 8 bytes "NEBTOKEN", uint32 version (1), uint32 bytes a token (2 or 4),
/// uint32 vocabulary, uint32 zero, uint64 count, then the ids. A file without the magic is taken as
/// bare uint16 ids, as nanoGPT writes them.
class TokenFile {
 public:
  /// Throws InputError naming the file: unreadable, truncated, unknown version, no tokens.
  explicit TokenFile(const std::string& path);
  ~TokenFile();
  TokenFile(TokenFile&& other) noexcept;
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;
  TokenFile& operator=(TokenFile&&) = delete;

  std::int64_t count() const { return count_; }
  /// 0 where the file does not tell.
  int vocabulary() const { return vocabulary_; }
  std::int64_t operator[](std::int64_t index) const;
  const std::string& path() const { return path_; }
  /// Of count and some of the content: two processes must read the same data.
  std::uint64_t fingerprint() const;

 private:
  std::string path_;
  std::span<const std::byte> map_;
  const std::byte* ids_ = nullptr;
  int bytes_per_token_ = 2;
  std::int64_t count_ = 0;
  int vocabulary_ = 0;
};

/// Writes ids with the smaller type that holds the vocabulary. Throws RunError.
void write_token_file(const std::string& path, std::span<const int> ids, int vocabulary);

}  // namespace nebula
