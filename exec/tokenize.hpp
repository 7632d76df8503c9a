#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace nebula {

struct TokenizeOptions {
  /// Text files, or folders whose text files are taken in order of name.
  std::vector<std::string> texts;
  /// SentencePiece model to read, or to write when `pieces` is set.
  std::string tokenizer;
  /// Train a new tokenizer of so many pieces; 0: use the one there is.
  int pieces = 0;
  /// Token file to write.
  std::string out;
  /// With a share above 0, every so-many-th document goes to `heldout` instead.
  std::string heldout;
  double heldout_share = 0;
};

struct TokenizeResult {
  int vocabulary = 0;
  std::int64_t text_bytes = 0;
  std::int64_t tokens = 0;
  std::int64_t heldout_tokens = 0;
};

/// Text to token ids. Documents are separated by lines of a single "%" (as in fortune files) or by
/// the end of a file; each ends with the end-of-sentence piece. Throws InputError.
TokenizeResult tokenize(const TokenizeOptions& options);

}  // namespace nebula
