#include "exec/token_file.hpp"

#include "core/error.hpp"
#include "core/node.hpp"
#include "tests/catch.hpp"
#include "tests/programs/run_program.hpp"

using namespace nebula;

TEST_CASE("token files of both widths read back") {
  const TestFolder folder;
  const std::string path = folder.path() + "/a.tok";
  for (const int vocabulary : {4096, 65536, 65537, 200000}) {
    const std::vector<int> ids{0, 1, vocabulary - 1, 7};
    write_token_file(path, ids, vocabulary);
    const TokenFile file(path);
    CHECK(file.vocabulary() == vocabulary);
    REQUIRE(file.count() == 4);
    for (std::size_t i = 0; i < ids.size(); ++i) CHECK(file[std::int64_t(i)] == ids[i]);
  }
}

TEST_CASE("bare uint16 ids are accepted, as nanoGPT writes them") {
  const TestFolder folder;
  const TokenFile file(folder.file("bare.bin", std::string("\x01\x00\xff\x02", 4)));
  CHECK(file.count() == 2);
  CHECK(file[0] == 1);
  CHECK(file[1] == 0x2ff);
  CHECK(file.vocabulary() == 0);
}

TEST_CASE("damaged token files are refused by name") {
  const TestFolder folder;
  const std::string path = folder.path() + "/good.tok";
  write_token_file(path, std::vector<int>{1, 2, 3, 4}, 100);
  const std::string good = read_file(path);
  const auto refused = [&](const std::string& content) {
    const std::string bad = folder.file("bad.tok", content);
    try {
      const TokenFile file(bad);
    } catch (const InputError& error) {
      return std::string(error.what()).starts_with(bad);
    }
    return false;
  };
  CHECK(refused(""));
  CHECK(refused("odd"));
  CHECK(refused(good.substr(0, 20)));
  CHECK(refused(good.substr(0, good.size() - 2)));
  CHECK(refused(good + "xx"));
  std::string version = good;
  version[8] = 9;
  CHECK(refused(version));
  std::string width = good;
  width[12] = 3;
  CHECK(refused(width));
  CHECK_THROWS_AS(TokenFile("/nowhere/x.tok"), InputError);
  CHECK_THROWS_AS(TokenFile(folder.path()), InputError);
}
