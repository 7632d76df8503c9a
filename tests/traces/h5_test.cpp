#include "traces/h5.hpp"

#include <fstream>

#include "core/error.hpp"
#include "tests/catch.hpp"
#include "tests/traces/fixture.hpp"

using namespace nebula;

TEST_CASE("attributes keep their values") {
  const test::TemporaryFolder folder;
  const std::string path = folder.file("a.h5");
  // Longer than the 64 KiB that an attribute may take inside the object's header.
  const std::string plan(200'000, 'x');
  const H5Session session;
  {
    H5File file = H5File::create(path, 1 << 20);
    file.write_text(file.id(), "text", "Grüße");
    file.write_text(file.id(), "empty", "");
    file.write_text(file.id(), "plan", plan);
    file.write_integer(file.id(), "integer", INT64_MIN);
    file.write_unsigned(file.id(), "unsigned", UINT64_MAX);
    file.write_flag(file.id(), "flag", false);
    file.write_flag(file.id(), "flag", true);
    file.close();
  }
  const H5File file = H5File::open(path);
  CHECK(file.read_text(file.id(), "text") == "Grüße");
  CHECK(file.read_text(file.id(), "empty").empty());
  CHECK(file.read_text(file.id(), "plan") == plan);
  CHECK(file.read_integer(file.id(), "integer") == INT64_MIN);
  CHECK(file.read_unsigned(file.id(), "unsigned") == UINT64_MAX);
  CHECK(file.read_flag(file.id(), "flag"));
  CHECK(file.has(file.id(), "text"));
  CHECK_FALSE(file.has(file.id(), "absent"));
}

TEST_CASE("a failure names the file, the work and the reason") {
  const test::TemporaryFolder folder;
  const H5Session session;
  const std::string missing = folder.file("no/such.h5");
  try {
    H5File::create(missing, 1 << 20);
    FAIL("created a file in a missing folder");
  } catch (const RunError& error) {
    const std::string text = error.what();
    CHECK(text.find(missing + ": can't create the file: ") == 0);
    CHECK(text.find("No such file or directory") != std::string::npos);
  }
  const std::string garbage = folder.file("garbage.h5");
  std::ofstream(garbage) << "not HDF5";
  CHECK_THROWS_AS(H5File::open(garbage), RunError);
  H5File file = H5File::create(folder.file("b.h5"), 1 << 20);
  CHECK_THROWS_AS(file.read_text(file.id(), "absent"), RunError);
  file.write_integer(file.id(), "number", 3);
  CHECK_THROWS_AS(file.read_text(file.id(), "number"), RunError);
}

TEST_CASE("an identifier closes once, also after moves") {
  const H5Session session;
  const hid_t id = H5Screate(H5S_SCALAR);
  {
    H5Id first(id, H5Sclose);
    H5Id second(std::move(first));
    CHECK_FALSE(first);  // NOLINT(bugprone-use-after-move): the state after a move is tested
    CHECK(second.get() == id);
    H5Id third;
    third = std::move(second);
    CHECK(H5Iis_valid(id) > 0);
    CHECK(third.close());
    CHECK(third.close());
    CHECK(H5Iis_valid(id) == 0);
  }
}
