#pragma once

#include <string>
#include <vector>

#include "traces/schema.hpp"

namespace nebula {

/// The parts that do not depend on the row's type.
H5Id create_table(const H5File& file, const TableSchema& schema, std::size_t chunk_rows,
                  const void* fill);
void append_rows(const H5File& file, const TableSchema& schema, const H5Id& dataset,
                 std::size_t first, std::size_t count, const void* rows);
H5Id open_table(const H5File& file, const TableSchema& schema);
std::size_t count_rows(const H5File& file, const TableSchema& schema, const H5Id& dataset);
void read_rows(const H5File& file, const TableSchema& schema, const H5Id& dataset,
               std::size_t count, void* rows);

/// One growing table of a trace file. `Row` must be the struct that the schema describes, and
/// Row{} is what a reader finds where a killed writer left nothing.
template <typename Row>
class H5Table {
 public:
  /// `chunk_rows` rows are stored, cached and rewritten together.
  static H5Table create(const H5File& file, TableSchema schema, std::size_t chunk_rows) {
    const Row fill;
    H5Table table(std::move(schema));
    table.dataset_ = create_table(file, table.schema_, chunk_rows, &fill);
    return table;
  }

  void append(const H5File& file, const std::vector<Row>& rows) {
    append_rows(file, schema_, dataset_, rows_, rows.size(), rows.data());
    rows_ += rows.size();
  }

  void abandon() { dataset_.abandon(); }

  static std::vector<Row> read_all(const H5File& file, TableSchema schema) {
    H5Table table(std::move(schema));
    table.dataset_ = open_table(file, table.schema_);
    std::vector<Row> rows(count_rows(file, table.schema_, table.dataset_));
    read_rows(file, table.schema_, table.dataset_, rows.size(), rows.data());
    return rows;
  }

 private:
  explicit H5Table(TableSchema schema) : schema_(std::move(schema)) {}

  TableSchema schema_;
  H5Id dataset_;
  std::size_t rows_ = 0;
};

}  // namespace nebula
