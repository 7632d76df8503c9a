#include "traces/h5.hpp"

#include <utility>

#include "core/error.hpp"

namespace nebula {
namespace {

std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// The first entry of HDF5's error stack is the call that failed at the bottom: it knows why.
herr_t keep_description(unsigned position, const H5E_error2_t* entry, void* reason) {
  if (position == 0 && entry->desc != nullptr) *static_cast<std::string*>(reason) = entry->desc;
  return 0;
}

std::string last_reason() {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_description, &reason);
  H5Eclear2(H5E_DEFAULT);
  if (reason.empty()) return "HDF5 gives no reason";
  // Of "unable to open file: name = 'a.h5', errno = 2, error message = 'No such file', ..." the
  // beginning and the system's words are for people.
  const std::string marker = "error message = '";
  const auto words = reason.find(marker);
  const auto colon = reason.find(": ");
  if (words == std::string::npos || colon == std::string::npos) return reason;
  const auto begin = words + marker.size();
  return reason.substr(0, colon + 2) + reason.substr(begin, reason.find('\'', begin) - begin);
}

H5Id text_type() {
  H5Id type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type.get(), H5T_VARIABLE);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  return type;
}

H5Id flag_type() {
  H5Id type(H5Tenum_create(H5T_NATIVE_INT8), H5Tclose);
  std::int8_t value = 0;
  H5Tenum_insert(type.get(), "FALSE", &value);
  value = 1;
  H5Tenum_insert(type.get(), "TRUE", &value);
  return type;
}

/// Without HDF5's lock the trace of a run can be looked at while it grows.
H5Id unlocked_access() {
  H5Id access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  H5Pset_file_locking(access.get(), false, true);
  return access;
}

}  // namespace

H5Session::H5Session() : lock_(library_mutex()) {
  // We close everything ourselves. What a full disk made us abandon must not be tried again when
  // the program ends: HDF5 crashes on it. Only the first call can and needs to say so.
  static const herr_t once = H5dont_atexit();
  static_cast<void>(once);
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

H5Id::H5Id(H5Id&& other) noexcept
    : id_(std::exchange(other.id_, -1)), close_(std::exchange(other.close_, nullptr)) {}

H5Id& H5Id::operator=(H5Id&& other) noexcept {
  if (this != &other) {
    close();
    id_ = std::exchange(other.id_, -1);
    close_ = std::exchange(other.close_, nullptr);
  }
  return *this;
}

bool H5Id::close() {
  const hid_t id = std::exchange(id_, -1);
  return id < 0 || close_(id) >= 0;
}

H5File H5File::create(const std::string& path, std::size_t grow_bytes) {
  H5File file;
  file.path_ = path;
  const H5Id access = unlocked_access();
  // A flush writes the file's new end last. A process killed just before leaves rows beyond the
  // end that the file knows: so let the end grow seldom, in large blocks.
  file.check(H5Pset_meta_block_size(access.get(), grow_bytes / 16), "create the file");
  file.check(H5Pset_small_data_block_size(access.get(), grow_bytes), "create the file");
  file.file_ = file.own(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), H5Fclose,
                        "create the file");
  return file;
}

H5File H5File::open(const std::string& path) {
  H5File file;
  file.path_ = path;
  const H5Id access = unlocked_access();
  file.file_ = file.own(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()), H5Fclose, "open it");
  return file;
}

void H5File::flush() const {
  check(H5Fflush(id(), H5F_SCOPE_LOCAL), "write to it");
}

void H5File::close() {
  if (!file_.close()) fail("close it");
}

H5Id H5File::own(hid_t id, H5Id::Close release, const std::string& what) const {
  if (id < 0) fail(what);
  return {id, release};
}

void H5File::check(herr_t status, const std::string& what) const {
  if (status < 0) fail(what);
}

void H5File::fail(const std::string& what) const {
  throw RunError(path_ + ": can't " + what + ": " + last_reason());
}

void H5File::write(hid_t object, const std::string& name, hid_t type, const void* value) const {
  const std::string what = "write attribute " + name;
  const H5Id space = own(H5Screate(H5S_SCALAR), H5Sclose, what);
  const H5Id attribute = own(has(object, name) ? H5Aopen(object, name.c_str(), H5P_DEFAULT)
                                               : H5Acreate2(object, name.c_str(), type, space.get(),
                                                            H5P_DEFAULT, H5P_DEFAULT),
                             H5Aclose, what);
  check(H5Awrite(attribute.get(), type, value), what);
}

void H5File::read(hid_t object, const std::string& name, hid_t type, void* value) const {
  const std::string what = "read attribute " + name;
  const H5Id attribute = own(H5Aopen(object, name.c_str(), H5P_DEFAULT), H5Aclose, what);
  check(H5Aread(attribute.get(), type, value), what);
}

void H5File::write_text(hid_t object, const std::string& name, const std::string& value) const {
  const char* text = value.c_str();
  write(object, name, text_type().get(), &text);
}

void H5File::write_integer(hid_t object, const std::string& name, std::int64_t value) const {
  write(object, name, H5T_NATIVE_INT64, &value);
}

void H5File::write_unsigned(hid_t object, const std::string& name, std::uint64_t value) const {
  write(object, name, H5T_NATIVE_UINT64, &value);
}

void H5File::write_flag(hid_t object, const std::string& name, bool value) const {
  const std::int8_t byte = value ? 1 : 0;
  write(object, name, flag_type().get(), &byte);
}

bool H5File::has(hid_t object, const std::string& name) const {
  return H5Aexists(object, name.c_str()) > 0;
}

std::string H5File::read_text(hid_t object, const std::string& name) const {
  char* text = nullptr;
  read(object, name, text_type().get(), &text);
  std::string result = text == nullptr ? "" : text;
  H5free_memory(text);
  return result;
}

std::int64_t H5File::read_integer(hid_t object, const std::string& name) const {
  std::int64_t value = 0;
  read(object, name, H5T_NATIVE_INT64, &value);
  return value;
}

std::uint64_t H5File::read_unsigned(hid_t object, const std::string& name) const {
  std::uint64_t value = 0;
  read(object, name, H5T_NATIVE_UINT64, &value);
  return value;
}

bool H5File::read_flag(hid_t object, const std::string& name) const {
  std::int8_t value = 0;
  read(object, name, flag_type().get(), &value);
  return value != 0;
}

}  // namespace nebula
