#include "tests/programs/run_program.hpp"

#include <filesystem>
#include <fstream>

#include <stdlib.h>
#include <sys/wait.h>

#include "core/node.hpp"

namespace nebula {

ProgramResult run_shell(const std::string& command) {
  const TestFolder folder;
  const std::string out = folder.path() + "/out";
  const std::string err = folder.path() + "/err";
  const int status = std::system(("( " + command + " ) >" + out + " 2>" + err).c_str());
  ProgramResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_file(out);
  result.err = read_file(err);
  return result;
}

TestFolder::TestFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "nebula-test-XXXXXX").string();
  if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
  path_ = name;
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TestFolder::file(const std::string& name, const std::string& text) const {
  const std::string path = path_ + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

}  // namespace nebula
