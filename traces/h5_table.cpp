#include "traces/h5_table.hpp"

#include "core/error.hpp"

namespace nebula {

H5Id create_table(const H5File& file, const TableSchema& schema, std::size_t chunk_rows,
                  const void* fill) {
  const std::string what = "create table " + schema.name;
  const hsize_t none = 0;
  const hsize_t unlimited = H5S_UNLIMITED;
  const hsize_t chunk = chunk_rows;
  const H5Id space = file.own(H5Screate_simple(1, &none, &unlimited), H5Sclose, what);
  const H5Id layout = file.own(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, what);
  file.check(H5Pset_chunk(layout.get(), 1, &chunk), what);
  file.check(H5Pset_fill_value(layout.get(), schema.row.get(), fill), what);
  // On disk the rows have no padding.
  const H5Id packed = file.own(H5Tcopy(schema.row.get()), H5Tclose, what);
  file.check(H5Tpack(packed.get()), what);
  H5Id dataset = file.own(H5Dcreate2(file.id(), schema.name.c_str(), packed.get(), space.get(),
                                     H5P_DEFAULT, layout.get(), H5P_DEFAULT),
                          H5Dclose, what);
  for (const auto& [column, unit] : schema.units)
    file.write_text(dataset.get(), "unit of " + column, unit);
  return dataset;
}

void append_rows(const H5File& file, const TableSchema& schema, const H5Id& dataset,
                 std::size_t first, std::size_t count, const void* rows) {
  if (count == 0) return;
  const std::string what = "extend table " + schema.name;
  const hsize_t start = first;
  const hsize_t length = count;
  const hsize_t total = start + length;
  file.check(H5Dset_extent(dataset.get(), &total), what);
  const H5Id target = file.own(H5Dget_space(dataset.get()), H5Sclose, what);
  file.check(H5Sselect_hyperslab(target.get(), H5S_SELECT_SET, &start, nullptr, &length, nullptr),
             what);
  const H5Id source = file.own(H5Screate_simple(1, &length, nullptr), H5Sclose, what);
  file.check(
      H5Dwrite(dataset.get(), schema.row.get(), source.get(), target.get(), H5P_DEFAULT, rows),
      what);
}

H5Id open_table(const H5File& file, const TableSchema& schema) {
  return file.own(H5Dopen2(file.id(), schema.name.c_str(), H5P_DEFAULT), H5Dclose,
                  "open table " + schema.name);
}

std::size_t count_rows(const H5File& file, const TableSchema& schema, const H5Id& dataset) {
  const std::string what = "read table " + schema.name;
  const H5Id space = file.own(H5Dget_space(dataset.get()), H5Sclose, what);
  if (H5Sget_simple_extent_ndims(space.get()) != 1)
    throw RunError(file.path() + ": table " + schema.name + " is no list of rows");
  const hssize_t rows = H5Sget_simple_extent_npoints(space.get());
  file.check(rows < 0 ? -1 : 0, what);
  // Rows of a killed writer may be missing, but not many more than there are bytes.
  hsize_t bytes = 0;
  file.check(H5Fget_filesize(file.id(), &bytes), what);
  if (hsize_t(rows) > bytes + 1'000'000)
    throw RunError(file.path() + ": table " + schema.name +
                   " claims more rows than the file holds");
  return std::size_t(rows);
}

void read_rows(const H5File& file, const TableSchema& schema, const H5Id& dataset,
               std::size_t count, void* rows) {
  if (count == 0) return;
  file.check(H5Dread(dataset.get(), schema.row.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, rows),
             "read table " + schema.name);
}

}  // namespace nebula
