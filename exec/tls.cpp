#include "exec/tls.hpp"

#include <array>
#include <chrono>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "core/error.hpp"
#include "exec/certificates.hpp"

namespace nebula {
namespace asio = boost::asio;
namespace {

using boost::system::error_code;

std::string common_name(X509* certificate) {
  if (!certificate) return {};
  char name[256] = "";
  const int length = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName,
                                               name, sizeof name);
  return length > 0 ? std::string(name, std::size_t(length)) : std::string{};
}

void require(const error_code& error, const std::string& file, const std::string& cloud) {
  if (!error) return;
  throw InputError(file, "cannot be used as key file of cloud '" + cloud + "': " + error.message() +
                             " (nebula-exec keys makes these files)");
}

// Owns what lingers.
struct Lingering {
  explicit Lingering(std::shared_ptr<TlsStream> s)
      : stream(std::move(s)), timer(stream->get_executor()) {}
  std::shared_ptr<TlsStream> stream;
  asio::steady_timer timer;
  std::array<std::byte, 4096> dropped;
};

void drain(std::shared_ptr<Lingering> lingering) {
  auto& socket = lingering->stream->next_layer();
  socket.async_read_some(asio::buffer(lingering->dropped),
                         [lingering](const error_code& error, std::size_t) {
                           if (!error) return drain(lingering);
                           error_code ignored;
                           lingering->stream->next_layer().close(ignored);
                           lingering->timer.cancel();
                         });
}

}  // namespace

asio::ssl::context make_tls_context(const std::string& key_folder, const std::string& cloud) {
  const KeyFiles files = key_files(key_folder, cloud);
  asio::ssl::context context(asio::ssl::context::tls);
  SSL_CTX* native = context.native_handle();
  if (SSL_CTX_set_min_proto_version(native, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(native, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(native,
                               "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:"
                               "TLS_CHACHA20_POLY1305_SHA256") != 1) {
    throw RunError("OpenSSL offers no TLS 1.3");
  }
  // Tickets that nobody reads turn an orderly close into a reset that loses data.
  SSL_CTX_set_num_tickets(native, 0);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  // The other side has the authority's certificate, or is a stranger.
  SSL_CTX_set_mode(native, SSL_MODE_NO_AUTO_CHAIN);

  error_code error;
  context.load_verify_file(files.authority, error);
  require(error, files.authority, cloud);
  context.use_certificate_chain_file(files.certificate, error);
  require(error, files.certificate, cloud);
  context.use_private_key_file(files.key, asio::ssl::context::pem, error);
  require(error, files.key, cloud);
  context.set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
  if (const std::string name = common_name(SSL_CTX_get0_certificate(native)); name != cloud) {
    throw InputError(files.certificate,
                     "is the certificate of '" + name + "', not '" + cloud + "'");
  }
  return context;
}

std::string certified_cloud(TlsStream& stream) {
  SSL* ssl = stream.native_handle();
  if (SSL_get_verify_result(ssl) != X509_V_OK) return {};
  X509* certificate = SSL_get1_peer_certificate(ssl);
  std::string name = common_name(certificate);
  X509_free(certificate);
  return name;
}

bool is_tls_error(const error_code& error) {
  return error.category() == asio::error::get_ssl_category();
}

std::string describe(const error_code& error, TlsStream& stream) {
  if (error == asio::error::eof || error == asio::ssl::error::stream_truncated) {
    return "connection closed by the other side";
  }
  std::string text = error.message();
  const long verified = SSL_get_verify_result(stream.native_handle());
  if (is_tls_error(error) && verified != X509_V_OK) {
    text += ": ";
    text += X509_verify_cert_error_string(verified);
  }
  return text;
}

std::string peer_address(const TlsStream& stream) {
  error_code error;
  const auto endpoint = stream.next_layer().remote_endpoint(error);
  if (error) return "unknown address";
  return endpoint.address().to_string() + ":" + std::to_string(endpoint.port());
}

void close_gently(std::shared_ptr<TlsStream> stream) {
  auto& socket = stream->next_layer();
  error_code ignored;
  socket.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  auto lingering = std::make_shared<Lingering>(std::move(stream));
  lingering->timer.expires_after(std::chrono::seconds(2));
  lingering->timer.async_wait([lingering](const error_code& cancelled) {
    error_code unused;
    if (!cancelled) lingering->stream->next_layer().close(unused);
  });
  drain(std::move(lingering));
}

}  // namespace nebula
