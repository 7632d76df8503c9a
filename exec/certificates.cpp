#include "exec/certificates.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/node.hpp"

namespace nebula {
namespace {

template <auto free>
struct Free {
  template <typename T>
  void operator()(T* p) const {
    free(p);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Free<X509_EXTENSION_free>>;
using Number = std::unique_ptr<BIGNUM, Free<BN_free>>;
using Buffer = std::unique_ptr<BIO, Free<BIO_free_all>>;

constexpr long day_s = 24 * 3600;

// OpenSSL's functions return 1 on success.
void must(bool done, const char* what) {
  if (done) return;
  char reason[256] = "";
  ERR_error_string_n(ERR_get_error(), reason, sizeof reason);
  throw RunError(std::string("keys: cannot ") + what + ": " + reason);
}

Key new_key() {
  Key key(EVP_EC_gen("P-256"));
  must(key != nullptr, "make a private key");
  return key;
}

void add_extension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension extension(X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str()));
  must(extension && X509_add_ext(certificate, extension.get(), -1) == 1, "add an extension");
}

void set_serial(X509* certificate) {
  const Number serial(BN_new());
  must(serial && BN_rand(serial.get(), 127, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
           BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(certificate)) != nullptr,
       "draw a serial number");
}

// A certificate of `name` for `key`, not yet signed.
Certificate new_certificate(const std::string& name, EVP_PKEY* key) {
  Certificate certificate(X509_new());
  must(certificate != nullptr, "make a certificate");
  X509* c = certificate.get();
  must(X509_set_version(c, X509_VERSION_3) == 1, "set the version");
  set_serial(c);
  must(X509_gmtime_adj(X509_getm_notBefore(c), -day_s) &&
           X509_gmtime_adj(X509_getm_notAfter(c), 365 * day_s) && X509_set_pubkey(c, key) == 1,
       "fill a certificate");
  const auto* text = reinterpret_cast<const unsigned char*>(name.c_str());
  must(X509_NAME_add_entry_by_txt(X509_get_subject_name(c), "CN", MBSTRING_UTF8, text, -1, -1, 0),
       "name a certificate");
  return certificate;
}

Certificate make_authority(EVP_PKEY* key) {
  // A name of its own, so that a foreign run's certificate is reported as issued by somebody else.
  unsigned char random[8];
  must(RAND_bytes(random, sizeof random) == 1, "draw random bytes");
  std::string name = "nebula run ";
  for (const unsigned char byte : random) {
    name += "0123456789abcdef"[byte >> 4];
    name += "0123456789abcdef"[byte & 15];
  }
  Certificate authority = new_certificate(name, key);
  X509* c = authority.get();
  must(X509_set_issuer_name(c, X509_get_subject_name(c)) == 1, "name the issuer");
  add_extension(c, c, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
  add_extension(c, c, NID_key_usage, "critical,keyCertSign,cRLSign");
  add_extension(c, c, NID_subject_key_identifier, "hash");
  must(X509_sign(c, key, EVP_sha256()) > 0, "sign the authority");
  return authority;
}

Certificate make_cloud(const std::string& cloud, EVP_PKEY* key, X509* authority,
                       EVP_PKEY* authority_key) {
  Certificate certificate = new_certificate(cloud, key);
  X509* c = certificate.get();
  must(X509_set_issuer_name(c, X509_get_subject_name(authority)) == 1, "name the issuer");
  add_extension(c, authority, NID_basic_constraints, "critical,CA:FALSE");
  add_extension(c, authority, NID_key_usage, "critical,digitalSignature");
  add_extension(c, authority, NID_ext_key_usage, "serverAuth,clientAuth");
  add_extension(c, authority, NID_subject_key_identifier, "hash");
  add_extension(c, authority, NID_authority_key_identifier, "keyid");
  add_extension(c, authority, NID_subject_alt_name, "DNS:" + cloud);
  must(X509_sign(c, authority_key, EVP_sha256()) > 0, "sign a certificate");
  return certificate;
}

std::string to_pem(X509* certificate) {
  const Buffer buffer(BIO_new(BIO_s_mem()));
  must(buffer && PEM_write_bio_X509(buffer.get(), certificate) == 1, "write a certificate");
  char* data = nullptr;
  const long size = BIO_get_mem_data(buffer.get(), &data);
  return {data, std::size_t(size)};
}

std::string to_pem(EVP_PKEY* key) {
  const Buffer buffer(BIO_new(BIO_s_mem()));
  must(buffer && PEM_write_bio_PKCS8PrivateKey(buffer.get(), key, nullptr, nullptr, 0, nullptr,
                                               nullptr) == 1,
       "write a private key");
  char* data = nullptr;
  const long size = BIO_get_mem_data(buffer.get(), &data);
  return {data, std::size_t(size)};
}

void check_names(const std::vector<std::string>& names) {
  if (names.empty()) throw InputError("keys", "no cloud is named");
  std::set<std::string> seen;
  const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
  for (const std::string& name : names) {
    if (name.empty() || name.size() > 63 || name[0] == '-' || name[0] == '.' ||
        name == "authority" || name.find_first_not_of(letters) != std::string::npos) {
      throw InputError("keys", "'" + name +
                                   "' cannot name a cloud: expected up to 63 letters, digits, "
                                   "'-', '_' and '.', and not 'authority'");
    }
    if (!seen.insert(name).second) throw InputError("keys", "cloud '" + name + "' is named twice");
  }
}

void write_new_file(const std::string& path, const std::string& text, mode_t mode) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (file < 0) throw RunError(path + ": cannot be made: " + std::strerror(errno));
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = ::write(file, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += std::size_t(n);
  }
  const bool flushed = ::fsync(file) == 0;
  if (::close(file) != 0 || !flushed || done < text.size()) {
    const std::string reason = std::strerror(errno);
    ::unlink(path.c_str());
    throw RunError(path + ": cannot be written: " + reason);
  }
}

}  // namespace

KeyFiles key_files(const std::string& folder, const std::string& cloud) {
  const std::filesystem::path at(folder);
  return {at / "authority.pem", at / (cloud + ".pem"), at / (cloud + ".key")};
}

void make_keys(const std::string& folder, const std::vector<std::string>& cloud_names) {
  check_names(cloud_names);

  // All in memory first, so that nothing is half written when OpenSSL fails.
  struct File {
    std::string path;
    std::string text;
    mode_t mode;
  };
  std::vector<File> files;
  const Key authority_key = new_key();
  const Certificate authority = make_authority(authority_key.get());
  files.push_back({key_files(folder, "").authority, to_pem(authority.get()), 0644});
  files.push_back(
      {std::filesystem::path(folder) / "authority.key", to_pem(authority_key.get()), 0600});
  for (const std::string& cloud : cloud_names) {
    const Key key = new_key();
    const Certificate certificate =
        make_cloud(cloud, key.get(), authority.get(), authority_key.get());
    const KeyFiles paths = key_files(folder, cloud);
    files.push_back({paths.certificate, to_pem(certificate.get()), 0644});
    files.push_back({paths.key, to_pem(key.get()), 0600});
  }

  for (const File& file : files) {
    if (std::filesystem::exists(std::filesystem::symlink_status(file.path))) {
      throw InputError(file.path, "exists already; keys are never overwritten");
    }
  }
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw RunError(folder + ": cannot be made: " + failed.message());

  std::size_t written = 0;
  try {
    for (; written < files.size(); ++written) {
      write_new_file(files[written].path, files[written].text, files[written].mode);
    }
  } catch (...) {
    while (written > 0) ::unlink(files[--written].path.c_str());
    throw;
  }
}

std::string run_name(const std::string& folder) {
  const std::string authority = folder + "/authority.pem";
  if (!std::filesystem::exists(authority)) return {};
  const std::string text = read_file(authority);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  if (EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1) {
    throw RunError(authority + ": OpenSSL can't compute a SHA-256");
  }
  std::string name;
  for (std::size_t i = 0; i < 8; ++i) {
    constexpr std::string_view digits = "0123456789abcdef";
    name += {digits[digest[i] >> 4], digits[digest[i] & 15]};
  }
  return name;
}

}  // namespace nebula
