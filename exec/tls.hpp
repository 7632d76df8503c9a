#pragma once

#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

namespace nebula {

using TlsStream = boost::asio::ssl::stream<boost::asio::ip::tcp::socket>;

/// TLS 1.3 with the cloud's certificate; the other side must show one of the same authority.
/// Throws InputError when a file is missing, unreadable or of another cloud.
boost::asio::ssl::context make_tls_context(const std::string& key_folder, const std::string& cloud);

/// The cloud that the other side's certificate is for; empty before the handshake.
std::string certified_cloud(TlsStream& stream);

/// True for what TLS itself reports: a certificate that is refused, no TLS at the other end.
bool is_tls_error(const boost::system::error_code& error);

/// In words, with OpenSSL's reason when a certificate did not verify.
std::string describe(const boost::system::error_code& error, TlsStream& stream);

/// "10.0.0.7:41234", or "unknown address" when the connection is gone.
std::string peer_address(const TlsStream& stream);

/// Ends our direction, then reads and drops what still comes (for at most two seconds) before
/// closing: closing with unread bytes would reset the connection, and what we sent last - an alert
/// or the reason of a refusal - would be lost.
void close_gently(std::shared_ptr<TlsStream> stream);

}  // namespace nebula
