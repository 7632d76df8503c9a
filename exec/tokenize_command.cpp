#include "exec/tokenize_command.hpp"

#include <iostream>
#include <memory>

#include <boost/program_options/value_semantic.hpp>

#include "core/fields.hpp"
#include "core/program.hpp"
#include "core/units.hpp"
#include "exec/tokenize.hpp"

namespace {

using namespace nebula;
namespace po = boost::program_options;

int run_tokenize(const TokenizeOptions& options, const CommonOptions& common) {
  const TokenizeResult result = tokenize(options);
  if (common.json) {
    std::cout << to_json(TableWriter()
                             .set("vocabulary", result.vocabulary)
                             .set("text_bytes", result.text_bytes)
                             .set("tokens", result.tokens)
                             .set("heldout_tokens", result.heldout_tokens)
                             .node());
  } else if (!common.quiet) {
    std::cout << format_bytes(double(result.text_bytes)) << " of text: " << result.tokens
              << " tokens in " << options.out;
    if (!options.heldout.empty()) {
      std::cout << ", " << result.heldout_tokens << " held out in " << options.heldout;
    }
    std::cout << " (vocabulary " << result.vocabulary << ", " << options.tokenizer << ")\n";
  }
  return 0;
}

Command tokenize_command() {
  auto options = std::make_shared<TokenizeOptions>();
  return {"tokenize", tokenize_summary,
          "nebula-exec tokenize --text book.txt --tokenizer my.model --pieces 4096 --out train.tok",
          [options](po::options_description& list) {
            list.add_options()(
                "text", po::value(&options->texts)->required()->multitoken()->value_name("FILE..."),
                "text files, or folders of them; a line with only % ends a document")(
                "tokenizer", po::value(&options->tokenizer)->required()->value_name("FILE"),
                "SentencePiece model: read, or written when --pieces is given")(
                "pieces", po::value(&options->pieces)->value_name("N"),
                "train a new tokenizer of so many pieces first")(
                "out", po::value(&options->out)->required()->value_name("FILE"),
                "token file to write")("heldout", po::value(&options->heldout)->value_name("FILE"),
                                       "token file for the documents held out")(
                "heldout-share", po::value(&options->heldout_share)->value_name("SHARE"),
                "share of documents held out, in [0, 1)");
          },
          [options](const CommonOptions& common) { return run_tokenize(*options, common); }};
}

}  // namespace

int main(int argc, char** argv) {
  return nebula::run_program({"nebula-exec", "", {tokenize_command()}}, argc, argv);
}
