#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/node.hpp"
#include "core/units.hpp"

namespace nebula {

/// Reads the table of a TOML or JSON file key by key and remembers which keys it used, so that
/// finish() can refuse the unknown ones. Every error names file, line (where known) and key.
///
///     Fields fields(node, "cluster.toml");
///     link.rate = fields.quantity("rate", Unit::bytes_per_s);
///     fields.finish();
///
/// quantity("rtt", Unit::seconds) accepts rtt = "30 ms" (as people write it) and rtt_s = 0.03 (as
/// programs write it). Numbers must be finite; quantities must not be negative.
class Fields {
 public:
  Fields(const Node& node, std::string file, std::string path = "");

  bool has(std::string_view key) const;
  /// Absent, or null in JSON.
  bool is_null(std::string_view key) const;

  std::string text(std::string_view key);
  std::string text(std::string_view key, std::string otherwise);
  std::int64_t integer(std::string_view key, std::int64_t least = INT64_MIN);
  std::int64_t integer_or(std::string_view key, std::int64_t otherwise,
                          std::int64_t least = INT64_MIN);
  /// An integer that fits an int, for counts.
  int count(std::string_view key, int least = 1);
  int count_or(std::string_view key, int otherwise, int least = 1);
  double number(std::string_view key);
  double number_or(std::string_view key, double otherwise);
  bool flag_or(std::string_view key, bool otherwise);
  double quantity(std::string_view key, Unit unit);
  double quantity_or(std::string_view key, Unit unit, double otherwise);
  std::optional<double> optional_quantity(std::string_view key, Unit unit);
  std::vector<std::string> texts(std::string_view key);
  std::vector<double> numbers(std::string_view key);
  std::vector<int> counts(std::string_view key, int least = 1);

  /// One of `names`; the index of the one found.
  std::size_t choice(std::string_view key, std::initializer_list<std::string_view> names);
  std::size_t choice_or(std::string_view key, std::initializer_list<std::string_view> names,
                        std::size_t otherwise);

  NodeList list(std::string_view key);
  Fields table(std::string_view key);
  std::vector<Fields> tables(std::string_view key);
  /// The sub-tables of a table with free keys ("devices"), with their names.
  std::vector<std::pair<std::string, Fields>> named_tables(std::string_view key);

  /// Marks a key as known without reading it.
  void skip(std::string_view key);
  /// Checks format = "nebula-…" and version = 1..newest; returns the version.
  int expect_format(std::string_view format, int newest);
  /// Throws for the first key that nobody asked for.
  void finish() const;

  /// Throws InputError about `key` ("" for the table itself).
  [[noreturn]] void fail(std::string_view key, const std::string& problem) const;
  const std::string& file() const { return file_; }

 private:
  const Node* find(std::string_view key) const;
  const Node& get(std::string_view key);
  std::string where(std::string_view key, int line) const;
  std::string key_path(std::string_view key) const;

  const NodeTable* table_ = nullptr;
  int line_ = 0;
  std::string file_;
  std::string path_;
  std::set<std::string, std::less<>> used_;
};

/// Builds a NodeTable for writing, in order.
class TableWriter {
 public:
  TableWriter& set(std::string key, Node value);
  TableWriter& set(std::string key, std::string value);
  TableWriter& set(std::string key, const char* value) {
    return set(std::move(key), std::string(value));
  }
  TableWriter& set(std::string key, std::string_view value) {
    return set(std::move(key), std::string(value));
  }
  TableWriter& set(std::string key, double value);
  TableWriter& set(std::string key, std::int64_t value);
  TableWriter& set(std::string key, int value) { return set(std::move(key), std::int64_t{value}); }
  TableWriter& set(std::string key, bool value);
  /// Skips an absent value.
  TableWriter& set(std::string key, const std::optional<double>& value);
  TableWriter& set(std::string key, const std::vector<double>& values);
  TableWriter& set(std::string key, const std::vector<int>& values);
  TableWriter& set(std::string key, const std::vector<std::string>& values);
  Node node() const { return {table_, 0}; }

 private:
  NodeTable table_;
};

}  // namespace nebula
