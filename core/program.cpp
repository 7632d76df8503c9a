#include "core/program.hpp"

#include <algorithm>
#include <iostream>
#include <optional>

#include <boost/program_options/parsers.hpp>
#include <boost/program_options/positional_options.hpp>
#include <boost/program_options/variables_map.hpp>

#include "core/error.hpp"

namespace nebula {
namespace {

namespace po = boost::program_options;

void print_verbs(const Program& program, std::ostream& out) {
  out << program.name << " - " << program.summary << "\n\nUsage: " << program.name
      << " COMMAND [OPTIONS]\n\nCommands:\n";
  std::size_t width = 0;
  for (const Command& command : program.commands) width = std::max(width, command.name.size());
  for (const Command& command : program.commands) {
    out << "  " << command.name << std::string(width + 2 - command.name.size(), ' ')
        << command.summary << '\n';
  }
  out << "\n"
      << program.name << " COMMAND --help tells a command's options; --version tells the "
      << "version.\n";
}

int run_command(const Program& program, const Command& command, std::vector<std::string> args) {
  const std::string title = program.name + (command.name.empty() ? "" : " " + command.name);
  CommonOptions common;
  po::options_description description(title + " - " + command.summary + "\n\nOptions", 100, 45);
  if (command.options) command.options(description);
  description.add_options()("quiet,q", po::bool_switch(&common.quiet),
                            "no progress, warnings only")(
      "json", po::bool_switch(&common.json), "one JSON object on stdout")("help,h", "this text")(
      "version", "the version");
  po::variables_map values;
  // No guessing of shortened names: a typo is an error, not another option.
  const auto style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  po::store(po::command_line_parser(args)
                .options(description)
                .positional(po::positional_options_description())
                .style(style)
                .run(),
            values);
  if (values.count("help")) {
    std::cout << description << "\nExample:\n  " << command.example << '\n';
    return 0;
  }
  if (values.count("version")) {
    std::cout << program.name << " " NEBULA_VERSION "\n";
    return 0;
  }
  po::notify(values);
  return command.run(common);
}

int dispatch(const Program& program, std::vector<std::string> args) {
  if (program.commands.size() == 1 && program.commands.front().name.empty()) {
    return run_command(program, program.commands.front(), std::move(args));
  }
  if (args.empty()) {
    print_verbs(program, std::cerr);
    return int(ExitCode::bad_input);
  }
  const std::string verb = args.front();
  if (verb == "--help" || verb == "-h" || verb == "help") {
    print_verbs(program, std::cout);
    return 0;
  }
  if (verb == "--version") {
    std::cout << program.name << " " NEBULA_VERSION "\n";
    return 0;
  }
  for (const Command& command : program.commands) {
    if (command.name != verb) continue;
    args.erase(args.begin());
    return run_command(program, command, std::move(args));
  }
  std::string known;
  for (const Command& command : program.commands)
    known += (known.empty() ? "" : ", ") + command.name;
  throw InputError("", "there is no command '" + verb + "', expected one of " + known);
}

}  // namespace

int run_program(const Program& program, int argc, char** argv) {
  const auto complain = [&](const std::exception& error, ExitCode code) {
    std::cout << std::flush;
    std::cerr << program.name << ": " << error.what() << '\n';
    return int(code);
  };
  try {
    return dispatch(program, {argv + 1, argv + argc});
  } catch (const InputError& error) {
    return complain(error, ExitCode::bad_input);
  } catch (const po::error& error) {
    return complain(error, ExitCode::bad_input);
  } catch (const Interrupted& error) {
    return complain(error, ExitCode::interrupted);
  } catch (const std::exception& error) {
    return complain(error, ExitCode::failed);
  }
}

}  // namespace nebula
