#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace nebula {

struct Node;
using NodeList = std::vector<Node>;
using NodeTable = std::vector<std::pair<std::string, Node>>;

/// A value read from a TOML or JSON file, with the line it came from (0 where the format does
/// not tell). Both formats become this one tree, so that one reader serves both.
struct Node {
  std::variant<std::monostate, bool, std::int64_t, double, std::string, NodeList, NodeTable> value;
  int line = 0;
};

/// Parses a file by its ending (.toml, .json); throws InputError naming file and line.
Node read_node_file(const std::string& path);

/// Parses text; `name` stands in for the file's name in errors.
Node parse_toml(std::string_view text, const std::string& name);
Node parse_json(std::string_view text, const std::string& name);

/// JSON text of a tree: two-space indented, keys in order, numbers so that they read back exactly.
std::string to_json(const Node& node);

/// Writes text to a temporary file beside `path` and renames it; throws RunError.
void write_file(const std::string& path, const std::string& text);
/// Makes the folder and those above it; throws InputError when it can't be.
void make_folder(const std::string& path);
/// The whole file; throws InputError when it can't be read.
std::string read_file(const std::string& path);

}  // namespace nebula
