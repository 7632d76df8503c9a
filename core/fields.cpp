#include "core/fields.hpp"

#include <climits>
#include <cmath>

#include "core/error.hpp"

namespace nebula {
namespace {

std::string_view type_name(const Node& node) {
  constexpr std::string_view names[] = {"nothing", "true or false", "an integer", "a number",
                                        "text",    "a list",        "a table"};
  return names[node.value.index()];
}

template <typename List>
std::string listed(const List& names) {
  std::string text;
  for (const auto& name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

}  // namespace

Fields::Fields(const Node& node, std::string file, std::string path)
    : table_(std::get_if<NodeTable>(&node.value)),
      line_(node.line),
      file_(std::move(file)),
      path_(std::move(path)) {
  if (!table_) {
    throw InputError(where("", line_), "expected a table, found " + std::string(type_name(node)));
  }
}

std::string Fields::key_path(std::string_view key) const {
  if (key.empty()) return path_;
  return path_.empty() ? std::string(key) : path_ + "." + std::string(key);
}

std::string Fields::where(std::string_view key, int line) const {
  std::string text = file_;
  if (line > 0) text += ":" + std::to_string(line);
  if (const std::string path = key_path(key); !path.empty()) text += ": " + path;
  return text;
}

void Fields::fail(std::string_view key, const std::string& problem) const {
  const Node* node = find(key);
  throw InputError(where(key, node ? node->line : line_), problem);
}

const Node* Fields::find(std::string_view key) const {
  for (const auto& [name, node] : *table_) {
    if (name == key) return &node;
  }
  return nullptr;
}

bool Fields::has(std::string_view key) const {
  return find(key) != nullptr;
}

const Node& Fields::get(std::string_view key) {
  const Node* node = find(key);
  if (!node) fail(key, "is missing");
  used_.emplace(key);
  return *node;
}

bool Fields::is_null(std::string_view key) const {
  const Node* node = find(key);
  return !node || std::holds_alternative<std::monostate>(node->value);
}

std::string Fields::text(std::string_view key) {
  const Node& node = get(key);
  if (const auto* text = std::get_if<std::string>(&node.value)) return *text;
  fail(key, "expected text, found " + std::string(type_name(node)));
}

std::string Fields::text(std::string_view key, std::string otherwise) {
  return has(key) ? text(key) : std::move(otherwise);
}

std::int64_t Fields::integer(std::string_view key, std::int64_t least) {
  const Node& node = get(key);
  const auto* number = std::get_if<std::int64_t>(&node.value);
  if (!number) fail(key, "expected an integer, found " + std::string(type_name(node)));
  if (*number < least) {
    fail(key, "is " + std::to_string(*number) + ", expected at least " + std::to_string(least));
  }
  return *number;
}

std::int64_t Fields::integer_or(std::string_view key, std::int64_t otherwise, std::int64_t least) {
  return has(key) ? integer(key, least) : otherwise;
}

int Fields::count(std::string_view key, int least) {
  const std::int64_t value = integer(key, least);
  if (value > INT_MAX) fail(key, "is " + std::to_string(value) + ", too large");
  return int(value);
}

int Fields::count_or(std::string_view key, int otherwise, int least) {
  return has(key) ? count(key, least) : otherwise;
}

double Fields::number(std::string_view key) {
  const Node& node = get(key);
  double value = 0;
  if (const auto* real = std::get_if<double>(&node.value)) {
    value = *real;
  } else if (const auto* integer = std::get_if<std::int64_t>(&node.value)) {
    value = double(*integer);
  } else {
    fail(key, "expected a number, found " + std::string(type_name(node)));
  }
  if (!std::isfinite(value)) fail(key, "is not a finite number");
  return value;
}

double Fields::number_or(std::string_view key, double otherwise) {
  return has(key) ? number(key) : otherwise;
}

bool Fields::flag_or(std::string_view key, bool otherwise) {
  if (!has(key)) return otherwise;
  const Node& node = get(key);
  if (const auto* flag = std::get_if<bool>(&node.value)) return *flag;
  fail(key, "expected true or false, found " + std::string(type_name(node)));
}

double Fields::quantity(std::string_view key, Unit unit) {
  const std::string with_unit = std::string(key) + std::string(key_suffix(unit));
  if (has(with_unit)) {
    if (has(key)) fail(key, "and " + with_unit + " both stand here; keep one");
    const double value = number(with_unit);
    if (value < 0) fail(with_unit, "is negative");
    return value;
  }
  const Node& node = get(key);
  const auto* text = std::get_if<std::string>(&node.value);
  try {
    if (text) return parse_quantity(*text, unit);
    if (std::holds_alternative<double>(node.value)) {
      return parse_quantity(std::to_string(std::get<double>(node.value)), unit);
    }
    if (std::holds_alternative<std::int64_t>(node.value)) {
      return parse_quantity(std::to_string(std::get<std::int64_t>(node.value)), unit);
    }
  } catch (const InputError& error) {
    fail(key, error.what());
  }
  fail(key, "expected a quantity with its unit in quotes, found " + std::string(type_name(node)));
}

double Fields::quantity_or(std::string_view key, Unit unit, double otherwise) {
  return optional_quantity(key, unit).value_or(otherwise);
}

std::optional<double> Fields::optional_quantity(std::string_view key, Unit unit) {
  if (!has(key) && !has(std::string(key) + std::string(key_suffix(unit)))) return std::nullopt;
  return quantity(key, unit);
}

std::vector<std::string> Fields::texts(std::string_view key) {
  const Node& node = get(key);
  const auto* list = std::get_if<NodeList>(&node.value);
  if (!list) fail(key, "expected a list of texts, found " + std::string(type_name(node)));
  std::vector<std::string> result;
  for (const Node& item : *list) {
    const auto* text = std::get_if<std::string>(&item.value);
    if (!text)
      fail(key, "expected a list of texts, found " + std::string(type_name(item)) + " in it");
    result.push_back(*text);
  }
  return result;
}

std::vector<double> Fields::numbers(std::string_view key) {
  const Node& node = get(key);
  const auto* list = std::get_if<NodeList>(&node.value);
  if (!list) fail(key, "expected a list of numbers, found " + std::string(type_name(node)));
  std::vector<double> result;
  for (const Node& item : *list) {
    if (const auto* real = std::get_if<double>(&item.value)) {
      result.push_back(*real);
    } else if (const auto* integer = std::get_if<std::int64_t>(&item.value)) {
      result.push_back(double(*integer));
    } else {
      fail(key, "expected a list of numbers, found " + std::string(type_name(item)) + " in it");
    }
    if (!std::isfinite(result.back())) fail(key, "holds a number that is not finite");
  }
  return result;
}

std::vector<int> Fields::counts(std::string_view key, int least) {
  std::vector<int> result;
  for (const double value : numbers(key)) {
    if (value != std::floor(value) || value < least || value > INT_MAX) {
      fail(key, "expected a list of integers of at least " + std::to_string(least));
    }
    result.push_back(int(value));
  }
  return result;
}

std::size_t Fields::choice(std::string_view key, std::initializer_list<std::string_view> names) {
  const std::string value = text(key);
  std::size_t index = 0;
  for (const auto& name : names) {
    if (name == value) return index;
    ++index;
  }
  fail(key, "is '" + value + "', expected one of " + listed(names));
}

std::size_t Fields::choice_or(std::string_view key, std::initializer_list<std::string_view> names,
                              std::size_t otherwise) {
  return has(key) ? choice(key, names) : otherwise;
}

NodeList Fields::list(std::string_view key) {
  const Node& node = get(key);
  if (const auto* list = std::get_if<NodeList>(&node.value)) return *list;
  fail(key, "expected a list, found " + std::string(type_name(node)));
}

Fields Fields::table(std::string_view key) {
  return {get(key), file_, key_path(key)};
}

std::vector<Fields> Fields::tables(std::string_view key) {
  const Node& node = get(key);
  const auto* list = std::get_if<NodeList>(&node.value);
  if (!list) fail(key, "expected a list of tables, found " + std::string(type_name(node)));
  std::vector<Fields> result;
  for (std::size_t i = 0; i < list->size(); ++i) {
    result.emplace_back((*list)[i], file_, key_path(key) + "[" + std::to_string(i) + "]");
  }
  return result;
}

std::vector<std::pair<std::string, Fields>> Fields::named_tables(std::string_view key) {
  const Node& node = get(key);
  const Fields parent(node, file_, key_path(key));
  std::vector<std::pair<std::string, Fields>> result;
  for (const auto& [name, child] : *parent.table_) {
    result.emplace_back(name, Fields(child, file_, parent.key_path(name)));
  }
  return result;
}

void Fields::skip(std::string_view key) {
  used_.emplace(key);
}

int Fields::expect_format(std::string_view format, int newest) {
  if (!has("format")) {
    fail("", "has no format; expected format = \"" + std::string(format) + "\" and a version");
  }
  if (const std::string found = text("format"); found != format) {
    fail("format", "is '" + found + "', expected '" + std::string(format) + "'");
  }
  const int version = count("version");
  if (version > newest) {
    fail("version", "is " + std::to_string(version) +
                        ", newer than this program, which reads up to " + std::to_string(newest));
  }
  return version;
}

void Fields::finish() const {
  for (const auto& [name, node] : *table_) {
    if (!used_.contains(name)) throw InputError(where(name, node.line), "unknown key");
  }
}

TableWriter& TableWriter::set(std::string key, Node value) {
  table_.emplace_back(std::move(key), std::move(value));
  return *this;
}
TableWriter& TableWriter::set(std::string key, std::string value) {
  return set(std::move(key), Node{std::move(value), 0});
}
TableWriter& TableWriter::set(std::string key, double value) {
  return set(std::move(key), Node{value, 0});
}
TableWriter& TableWriter::set(std::string key, std::int64_t value) {
  return set(std::move(key), Node{value, 0});
}
TableWriter& TableWriter::set(std::string key, bool value) {
  return set(std::move(key), Node{value, 0});
}
TableWriter& TableWriter::set(std::string key, const std::optional<double>& value) {
  return value ? set(std::move(key), *value) : *this;
}
TableWriter& TableWriter::set(std::string key, const std::vector<double>& values) {
  NodeList list;
  for (const double value : values) list.push_back({value, 0});
  return set(std::move(key), Node{std::move(list), 0});
}
TableWriter& TableWriter::set(std::string key, const std::vector<int>& values) {
  NodeList list;
  for (const int value : values) list.push_back({std::int64_t{value}, 0});
  return set(std::move(key), Node{std::move(list), 0});
}
TableWriter& TableWriter::set(std::string key, const std::vector<std::string>& values) {
  NodeList list;
  for (const std::string& value : values) list.push_back({value, 0});
  return set(std::move(key), Node{std::move(list), 0});
}

}  // namespace nebula
