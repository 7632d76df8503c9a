#include "exec/certificates.hpp"

#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>

#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "exec/tls.hpp"
#include "tests/catch.hpp"
#include "tests/exec/wire_fixture.hpp"

namespace nebula {
namespace {

using test::contains;
using test::TemporaryFolder;

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

unsigned mode(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 0777u : 0u;
}

std::string input_error(const std::function<void()>& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

struct X509Deleter {
  void operator()(X509* certificate) const { X509_free(certificate); }
};

std::unique_ptr<X509, X509Deleter> read_certificate(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "r"),
                                                             std::fclose);
  return std::unique_ptr<X509, X509Deleter>(PEM_read_X509(file.get(), nullptr, nullptr, nullptr));
}

TEST_CASE("keys are for their owner alone and certificates name their cloud") {
  const TemporaryFolder folder;
  make_keys(folder / "keys", {"north", "south"});
  CHECK(mode(folder / "keys/authority.key") == 0600);
  CHECK(mode(folder / "keys/north.key") == 0600);
  CHECK(mode(folder / "keys/south.key") == 0600);

  const auto authority = read_certificate(folder / "keys/authority.pem");
  REQUIRE(authority);
  for (const std::string cloud : {"north", "south"}) {
    const auto certificate = read_certificate(folder / ("keys/" + cloud + ".pem"));
    REQUIRE(certificate);
    CHECK(X509_check_host(certificate.get(), cloud.c_str(), 0, 0, nullptr) == 1);
    CHECK(X509_check_host(certificate.get(), "east", 0, 0, nullptr) == 0);
    CHECK(X509_verify(certificate.get(), X509_get0_pubkey(authority.get())) == 1);
    CHECK(X509_check_ca(certificate.get()) == 0);
    // Valid for a clock that's 23 hours behind, and for most of a year.
    std::time_t when = std::time(nullptr) - 23 * 3600;
    CHECK(X509_cmp_time(X509_get0_notBefore(certificate.get()), &when) < 0);
    when += 360 * 24 * 3600;
    CHECK(X509_cmp_time(X509_get0_notAfter(certificate.get()), &when) > 0);
    CHECK_NOTHROW(make_tls_context(folder / "keys", cloud));
  }
}

TEST_CASE("a run is named by its authority") {
  const TemporaryFolder folder;
  make_keys(folder / "a", {"north", "south"});
  make_keys(folder / "b", {"north", "south"});
  CHECK(run_name(folder / "a").size() == 16);
  CHECK(run_name(folder / "a") == run_name(folder / "a"));
  CHECK(run_name(folder / "a") != run_name(folder / "b"));
  CHECK(run_name(folder / "nowhere").empty());
}

TEST_CASE("keys are never overwritten") {
  const TemporaryFolder folder;
  make_keys(folder / "keys", {"north"});
  const std::string before = read_text(folder / "keys/north.key");
  CHECK(contains(input_error([&] { make_keys(folder / "keys", {"south"}); }), "exists already"));
  CHECK(!std::filesystem::exists(folder / "keys/south.pem"));
  CHECK(read_text(folder / "keys/north.key") == before);
}

TEST_CASE("what can't be a cloud's file name is refused") {
  const TemporaryFolder folder;
  for (const std::string name : {"", "a/b", "..", ".hidden", "-x", "authority", "a b", "a,DNS:b"}) {
    CAPTURE(name);
    CHECK(
        contains(input_error([&] { make_keys(folder / "keys", {name}); }), "cannot name a cloud"));
  }
  CHECK(contains(input_error([&] { make_keys(folder / "keys", {"a", "a"}); }), "twice"));
  CHECK(contains(input_error([&] { make_keys(folder / "keys", {}); }), "no cloud"));
  CHECK(!std::filesystem::exists(folder / "keys"));
}

TEST_CASE("missing and mixed up key files are named") {
  const TemporaryFolder folder;
  make_keys(folder / "keys", {"north", "south"});
  CHECK(contains(input_error([&] { make_tls_context(folder / "none", "north"); }),
                 folder / "none/authority.pem"));
  CHECK(contains(input_error([&] { make_tls_context(folder / "keys", "east"); }), "east.pem"));

  std::filesystem::copy_file(folder / "keys/south.pem", folder / "keys/north.pem",
                             std::filesystem::copy_options::overwrite_existing);
  CHECK(contains(input_error([&] { make_tls_context(folder / "keys", "north"); }), "north"));
  std::filesystem::copy_file(folder / "keys/south.key", folder / "keys/north.key",
                             std::filesystem::copy_options::overwrite_existing);
  CHECK(contains(input_error([&] { make_tls_context(folder / "keys", "north"); }),
                 "is the certificate of 'south'"));
}

}  // namespace
}  // namespace nebula
