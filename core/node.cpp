#include "core/node.hpp"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <nlohmann/json.hpp>
#include <toml++/toml.h>

#include "core/error.hpp"

namespace nebula {
namespace {

Node from_toml(const toml::node& source, const std::string& name) {
  Node node;
  node.line = int(source.source().begin.line);
  if (const auto* table = source.as_table()) {
    NodeTable entries;
    for (const auto& [key, value] : *table) {
      entries.emplace_back(std::string(key.str()), from_toml(value, name));
    }
    node.value = std::move(entries);
  } else if (const auto* array = source.as_array()) {
    NodeList list;
    for (const auto& value : *array) list.push_back(from_toml(value, name));
    node.value = std::move(list);
  } else if (const auto* text = source.as_string()) {
    node.value = text->get();
  } else if (const auto* integer = source.as_integer()) {
    node.value = integer->get();
  } else if (const auto* number = source.as_floating_point()) {
    node.value = number->get();
  } else if (const auto* flag = source.as_boolean()) {
    node.value = flag->get();
  } else {
    throw InputError(name + ":" + std::to_string(node.line), "dates and times are not used here");
  }
  return node;
}

// Builds the tree itself, because nlohmann's own silently keeps the last of two equal keys.
class JsonBuilder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit JsonBuilder(std::string name) : name_(std::move(name)) {}

  bool null() override { return add({}); }
  bool boolean(bool value) override { return add({value}); }
  bool number_integer(std::int64_t value) override { return add({value}); }
  bool number_unsigned(std::uint64_t value) override {
    if (value > std::uint64_t(INT64_MAX)) return add({double(value)});
    return add({std::int64_t(value)});
  }
  bool number_float(double value, const std::string&) override { return add({value}); }
  bool string(std::string& value) override { return add({value}); }
  bool binary(nlohmann::json::binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open({NodeTable{}, 0}); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open({NodeList{}, 0}); }
  bool end_array() override { return close(); }
  bool key(std::string& value) override {
    for (const auto& [known, ignored] : std::get<NodeTable>(stack_.back().value)) {
      if (known == value) throw InputError(name_, "key '" + value + "' stands twice");
    }
    keys_.push_back(value);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    position_ = position;
    what_ = error.what();
    return false;
  }

  Node take() { return std::move(root_); }
  std::size_t position() const { return position_; }
  const std::string& what() const { return what_; }

 private:
  bool open(Node node) {
    // Deeper than any file of ours: stop before the recursion of readers does.
    if (stack_.size() > 64) throw InputError(name_, "nested more than 64 levels deep");
    stack_.push_back(std::move(node));
    return true;
  }
  bool close() {
    Node node = std::move(stack_.back());
    stack_.pop_back();
    return add(std::move(node));
  }
  bool add(Node node) {
    if (stack_.empty()) {
      root_ = std::move(node);
    } else if (auto* list = std::get_if<NodeList>(&stack_.back().value)) {
      list->push_back(std::move(node));
    } else {
      std::get<NodeTable>(stack_.back().value).emplace_back(keys_.back(), std::move(node));
      keys_.pop_back();
    }
    return true;
  }

  std::string name_;
  Node root_;
  std::vector<Node> stack_;
  std::vector<std::string> keys_;
  std::size_t position_ = 0;
  std::string what_;
};

nlohmann::ordered_json to_nlohmann(const Node& node) {
  return std::visit(
      [](const auto& value) -> nlohmann::ordered_json {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nullptr;
        } else if constexpr (std::is_same_v<T, NodeList>) {
          auto list = nlohmann::ordered_json::array();
          for (const Node& item : value) list.push_back(to_nlohmann(item));
          return list;
        } else if constexpr (std::is_same_v<T, NodeTable>) {
          auto table = nlohmann::ordered_json::object();
          for (const auto& [key, item] : value) table[key] = to_nlohmann(item);
          return table;
        } else {
          return value;
        }
      },
      node.value);
}

}  // namespace

Node parse_toml(std::string_view text, const std::string& name) {
  try {
    return from_toml(toml::parse(text, name), name);
  } catch (const toml::parse_error& error) {
    throw InputError(name + ":" + std::to_string(error.source().begin.line),
                     std::string(error.description()));
  }
}

Node parse_json(std::string_view text, const std::string& name) {
  JsonBuilder builder(name);
  if (!nlohmann::json::sax_parse(text, &builder)) {
    std::size_t line = 1;
    for (std::size_t i = 0; i < builder.position() && i < text.size(); ++i) line += text[i] == '\n';
    std::string what = builder.what();
    // Drop the library's own prefix "[json.exception...] parse error at line 3, column 5: ".
    if (const auto at = what.find("syntax error"); at != std::string::npos) what = what.substr(at);
    throw InputError(name + ":" + std::to_string(line), "not valid JSON: " + what);
  }
  return builder.take();
}

std::string read_file(const std::string& path) {
  if (std::filesystem::is_directory(path)) throw InputError(path, "is a folder, not a file");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(path, "can't be read: no such file or no permission");
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

void write_file(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".new";
  std::ofstream file(temporary, std::ios::binary);
  file << text;
  file.close();
  std::error_code error;
  if (file) std::filesystem::rename(temporary, path, error);
  if (!file || error) {
    std::filesystem::remove(temporary, error);
    throw RunError(path + ": can't be written");
  }
}

void make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw InputError(path, "is not a folder that can be made: " + error.message());
}

Node read_node_file(const std::string& path) {
  const std::string text = read_file(path);
  if (path.ends_with(".toml")) return parse_toml(text, path);
  if (path.ends_with(".json")) return parse_json(text, path);
  throw InputError(path, "neither a .toml nor a .json file");
}

std::string to_json(const Node& node) {
  return to_nlohmann(node).dump(2) + "\n";
}

}  // namespace nebula
