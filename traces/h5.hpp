#pragma once

#include <cstdint>
#include <mutex>
#include <string>

#include <hdf5.h>

namespace nebula {

/// Held around every group of HDF5 calls. The library is not thread-safe as many build it, so one
/// lock serves the whole process. It also keeps HDF5 from printing its error stack: the reason
/// goes into our exceptions instead.
class H5Session {
 public:
  H5Session();

 private:
  std::lock_guard<std::mutex> lock_;
};

/// Owns one HDF5 identifier.
class H5Id {
 public:
  using Close = herr_t (*)(hid_t);

  H5Id() = default;
  H5Id(hid_t id, Close release) : id_(id), close_(release) {}
  H5Id(H5Id&& other) noexcept;
  H5Id& operator=(H5Id&& other) noexcept;
  H5Id(const H5Id&) = delete;
  H5Id& operator=(const H5Id&) = delete;
  ~H5Id() { close(); }

  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }
  /// False when HDF5 could not write out what the identifier stood for.
  bool close();
  /// Leaves it to the end of the process, unclosed.
  void abandon() { id_ = -1; }

 private:
  hid_t id_ = -1;
  Close close_ = nullptr;
};

/// An open file and its name for messages. Every function throws RunError
/// "FILE: can't WHAT: reason of HDF5".
class H5File {
 public:
  H5File() = default;
  /// Replaces what stood there. The file grows by `grow_bytes` at a time. HDF5's oldest format:
  /// only that survives a killed writer.
  static H5File create(const std::string& path, std::size_t grow_bytes);
  static H5File open(const std::string& path);

  hid_t id() const { return file_.get(); }
  explicit operator bool() const { return bool(file_); }
  const std::string& path() const { return path_; }
  void flush() const;
  void close();
  /// After a failed write: HDF5 can neither close such a file nor live on without crashing when
  /// asked to. It stays open until the process ends.
  void abandon() { file_.abandon(); }

  /// Pass on what an HDF5 call returned, or throw.
  H5Id own(hid_t id, H5Id::Close release, const std::string& what) const;
  void check(herr_t status, const std::string& what) const;

  /// Attributes of `object`.
  void write_text(hid_t object, const std::string& name, const std::string& value) const;
  void write_integer(hid_t object, const std::string& name, std::int64_t value) const;
  void write_unsigned(hid_t object, const std::string& name, std::uint64_t value) const;
  /// Replaces an older value. An enum of FALSE and TRUE, as h5py reads and writes it.
  void write_flag(hid_t object, const std::string& name, bool value) const;
  bool has(hid_t object, const std::string& name) const;
  std::string read_text(hid_t object, const std::string& name) const;
  std::int64_t read_integer(hid_t object, const std::string& name) const;
  std::uint64_t read_unsigned(hid_t object, const std::string& name) const;
  bool read_flag(hid_t object, const std::string& name) const;

 private:
  void write(hid_t object, const std::string& name, hid_t type, const void* value) const;
  void read(hid_t object, const std::string& name, hid_t type, void* value) const;
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_;
  H5Id file_;
};

}  // namespace nebula
