#include "exec/tokenize.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <sstream>

#include <sentencepiece_processor.h>
#include <sentencepiece_trainer.h>

#include "core/error.hpp"
#include "core/node.hpp"
#include "exec/token_file.hpp"

namespace nebula {
namespace {

namespace fs = std::filesystem;

// Folders of fortune files hold an index beside each text (.dat) and a link in UTF-8 (.u8).
bool is_text(const fs::path& path) {
  const std::string ending = path.extension();
  return fs::is_regular_file(path) && !fs::is_symlink(path) && ending != ".dat" && ending != ".u8";
}

std::vector<std::string> text_files(const std::vector<std::string>& names) {
  std::vector<std::string> files;
  for (const std::string& name : names) {
    if (!fs::is_directory(name)) {
      files.push_back(name);
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry : fs::directory_iterator(name)) {
      if (is_text(entry.path())) inside.push_back(entry.path());
    }
    if (inside.empty()) throw InputError(name, "is a folder without text files");
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  if (files.empty()) throw InputError("", "no text was given");
  return files;
}

std::vector<std::string> read_documents(const std::vector<std::string>& files) {
  std::vector<std::string> documents;
  std::string document;
  const auto finish = [&] {
    if (document.find_first_not_of(" \t\n") != std::string::npos) documents.push_back(document);
    document.clear();
  };
  for (const std::string& file : files) {
    std::istringstream text(read_file(file));
    for (std::string line; std::getline(text, line);) {
      if (line == "%") {
        finish();
      } else {
        document += line + '\n';
      }
    }
    finish();
  }
  if (documents.empty()) throw InputError(files.front(), "holds no text");
  return documents;
}

// One in `every` documents is held out, spread evenly.
bool is_heldout(std::size_t index, double share) {
  return std::floor(double(index + 1) * share) > std::floor(double(index) * share);
}

void train_tokenizer(const TokenizeOptions& options, const std::vector<std::string>& documents) {
  const std::string corpus = options.tokenizer + ".corpus";
  std::string text;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (!is_heldout(i, options.heldout_share)) text += documents[i];
  }
  write_file(corpus, text);
  std::string prefix = options.tokenizer;
  if (prefix.ends_with(".model")) prefix.resize(prefix.size() - 6);
  const auto status = sentencepiece::SentencePieceTrainer::Train({
      {"input", corpus},
      {"model_prefix", prefix},
      {"vocab_size", std::to_string(options.pieces)},
      {"model_type", "bpe"},
      {"byte_fallback", "true"},
      {"normalization_rule_name", "identity"},
      {"remove_extra_whitespaces", "false"},
      {"user_defined_symbols", "\n"},
      {"max_sentence_length", "16384"},
      {"num_threads", "2"},
      {"minloglevel", "2"},
  });
  fs::remove(corpus);
  fs::remove(prefix + ".vocab");
  if (!status.ok()) {
    throw InputError("--pieces", "no tokenizer of " + std::to_string(options.pieces) +
                                     " pieces comes out of this text: " + status.ToString());
  }
  if (prefix + ".model" != options.tokenizer) fs::rename(prefix + ".model", options.tokenizer);
}

}  // namespace

TokenizeResult tokenize(const TokenizeOptions& options) {
  if (options.heldout_share < 0 || options.heldout_share >= 1) {
    throw InputError("--heldout-share", "must be in [0, 1)");
  }
  if ((options.heldout_share > 0) != !options.heldout.empty()) {
    throw InputError("--heldout", "and --heldout-share go together");
  }
  const std::vector<std::string> documents = read_documents(text_files(options.texts));
  if (options.pieces > 0) train_tokenizer(options, documents);

  sentencepiece::SentencePieceProcessor processor;
  const auto status = processor.Load(options.tokenizer);
  if (!status.ok()) {
    throw InputError(options.tokenizer, "is not a SentencePiece model: " + status.ToString());
  }
  TokenizeResult result;
  result.vocabulary = processor.GetPieceSize();
  std::vector<int> training;
  std::vector<int> heldout;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    std::vector<int>& ids = is_heldout(i, options.heldout_share) ? heldout : training;
    const std::vector<int> pieces = processor.EncodeAsIds(documents[i]);
    ids.insert(ids.end(), pieces.begin(), pieces.end());
    ids.push_back(processor.eos_id());
    result.text_bytes += std::int64_t(documents[i].size());
  }
  result.tokens = std::int64_t(training.size());
  result.heldout_tokens = std::int64_t(heldout.size());
  write_token_file(options.out, training, result.vocabulary);
  if (!options.heldout.empty()) write_token_file(options.heldout, heldout, result.vocabulary);
  return result;
}

}  // namespace nebula
