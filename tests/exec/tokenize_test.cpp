#include "exec/tokenize.hpp"

#include "core/error.hpp"
#include "core/node.hpp"
#include "exec/token_file.hpp"
#include "tests/catch.hpp"
#include "tests/programs/run_program.hpp"

using namespace nebula;

TEST_CASE("text becomes tokens, a share of its documents held out") {
  const TestFolder folder;
  std::string text;
  for (int i = 0; i < 200; ++i) {
    text += "The quick brown fox number " + std::to_string(i) + " jumps over it.\nTwice.\n%\n";
  }
  TokenizeOptions options;
  options.texts = {folder.file("text", text)};
  options.tokenizer = folder.path() + "/my.model";
  options.pieces = 320;
  options.out = folder.path() + "/train.tok";
  options.heldout = folder.path() + "/heldout.tok";
  options.heldout_share = 0.1;
  const TokenizeResult result = tokenize(options);
  CHECK(result.vocabulary == 320);
  CHECK(TokenFile(options.out).count() == result.tokens);
  // A tenth of equal documents, give or take a token of their numbers.
  CHECK(double(result.heldout_tokens) == Approx(double(result.tokens) / 9).epsilon(0.05));
  // With the tokenizer there, the same ids come out.
  options.pieces = 0;
  const std::string first = read_file(options.out);
  tokenize(options);
  CHECK(read_file(options.out) == first);
  options.pieces = 100000;
  CHECK_THROWS_AS(tokenize(options), InputError);
}
