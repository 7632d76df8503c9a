#pragma once

#include <functional>
#include <string>
#include <vector>

#include <boost/program_options/options_description.hpp>

namespace nebula {

/// Options that every command has.
struct CommonOptions {
  /// No progress, warnings only.
  bool quiet = false;
  /// One JSON object on stdout instead of text.
  bool json = false;
};

/// One verb of a program. `options` adds its options (values bound to the fields of an options
/// struct, whose defaults they show); `run` does the work and returns an exit code.
struct Command {
  std::string name;
  std::string summary;
  std::string example;
  std::function<void(boost::program_options::options_description&)> options;
  std::function<int(const CommonOptions&)> run;
};

struct Program {
  std::string name;
  std::string summary;
  /// A single command with an empty name makes a program without verbs.
  std::vector<Command> commands;
};

/// Parses the command line, runs the command and turns exceptions into messages on stderr and exit
/// codes: InputError and wrong options 2, Interrupted 3, others 1.
int run_program(const Program& program, int argc, char** argv);

}  // namespace nebula
