#pragma once

#include <string>

namespace nebula {

struct ProgramResult {
  int exit_code = -1;  ///< 128 + n for signal n
  std::string out;
  std::string err;
};

/// Runs a shell command line and collects what it prints.
ProgramResult run_shell(const std::string& command);

/// A fresh folder that is removed at the end of the test.
class TestFolder {
 public:
  TestFolder();
  ~TestFolder();
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  const std::string& path() const { return path_; }
  /// Writes a file into the folder and returns its path.
  std::string file(const std::string& name, const std::string& text) const;

 private:
  std::string path_;
};

}  // namespace nebula
