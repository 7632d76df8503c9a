#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "exec/little_endian.hpp"
#include "exec/transport.hpp"
#include "tests/catch.hpp"
#include "tests/exec/raw_peer.hpp"
#include "tests/exec/wire_fixture.hpp"

namespace nebula {
namespace {

namespace asio = boost::asio;
using test::activation;
using test::Chain;
using test::contains;
using test::gradient;
using test::hello_frame;
using test::RawPeer;
using test::run_error;

/// Until the log says `what`; gives up after a minute and throws the log.
void wait_for(const test::Log& log, const std::string& what) {
  for (int i = 0; !contains(log.text(), what); ++i) {
    if (i == 12'000) throw std::runtime_error("no '" + what + "' in the log:\n" + log.text());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

/// A connected pair whose stage 1 is bothered.
struct Bothered {
  Chain chain{2, 1, [](TransportOptions& options) { options.handshake_timeout_s = 0.5; }};

  int port() { return chain.at(1).port(); }
  asio::ssl::context keys(const std::string& cloud) {
    return make_tls_context(chain.folder / "keys", cloud);
  }
  /// The stranger was refused for this reason, and the run goes on.
  void expect(const std::string& reason, int times = 1) {
    CAPTURE(reason);
    wait_for(chain.logs[1], reason);
    CHECK(contains(chain.logs[1].text(), "stage 1 (mid) refused a connection from 127.0.0.1:"));
    CHECK(chain.at(1).refused() == times);
    chain.at(0).send(times, activation(0), std::vector<std::byte>(10));
    CHECK(chain.at(1).receive(times, activation(0)).payload.size() == 10);
    chain.at(1).send(times, gradient(0), std::vector<std::byte>(20));
    CHECK(chain.at(0).receive(times, gradient(0)).payload.size() == 20);
  }
};

void say_plainly(int port, const std::string& text) {
  asio::io_context io;
  asio::ip::tcp::socket socket(io);
  socket.connect({asio::ip::address_v4::loopback(), static_cast<unsigned short>(port)});
  asio::write(socket, asio::buffer(text));
  std::array<char, 100> answer;
  boost::system::error_code error;
  while (!error) socket.read_some(asio::buffer(answer), error);
}

TEST_CASE("strangers without TLS are refused and the run goes on") {
  Bothered run;
  say_plainly(run.port(), "GET / HTTP/1.1\r\nHost: north\r\n\r\n");
  run.expect("http request", 1);
  std::mt19937_64 random(1);
  for (int i = 0; i < 20; ++i) {
    const auto bytes = test::random_bytes(random, 1 + random() % 2000);
    std::string text(bytes.size(), ' ');
    std::transform(bytes.begin(), bytes.end(), text.begin(),
                   [](std::byte b) { return std::to_integer<char>(b); });
    text[0] = '\x55';  // no TLS record begins so
    if (text.size() < 11) text.resize(11);
    say_plainly(run.port(), text);
  }
  while (run.chain.at(1).refused() < 21) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  run.expect("wrong version number", 21);
}

TEST_CASE("whoever says nothing is refused when time is up") {
  Bothered run;
  asio::io_context io;
  asio::ip::tcp::socket silent(io);
  silent.connect({asio::ip::address_v4::loopback(), static_cast<unsigned short>(run.port())});
  run.expect("says nothing", 1);
  RawPeer no_hello(run.port(), run.keys("north"));
  CHECK(no_hello.shake_hands());
  run.expect("says no hello", 2);
}

TEST_CASE("no certificate, a foreign run's, and one made by oneself are refused") {
  Bothered run;
  asio::ssl::context none(asio::ssl::context::tls_client);
  RawPeer without(run.port(), std::move(none));
  without.shake_hands();
  CHECK(without.read().header.kind == FrameKind::goodbye);
  run.expect("peer did not return a certificate", 1);

  make_keys(run.chain.folder / "foreign", {"north"});
  asio::ssl::context foreign = make_tls_context(run.chain.folder / "foreign", "north");
  foreign.set_verify_mode(asio::ssl::verify_none);
  RawPeer stranger(run.port(), std::move(foreign));
  stranger.shake_hands();
  CHECK(stranger.read().header.kind == FrameKind::goodbye);
  run.expect("unable to get local issuer certificate", 2);

  // The authority of the foreign run itself: signed by its own key.
  asio::ssl::context own(asio::ssl::context::tls_client);
  own.use_certificate_chain_file(run.chain.folder / "foreign/authority.pem");
  own.use_private_key_file(run.chain.folder / "foreign/authority.key", asio::ssl::context::pem);
  RawPeer self_made(run.port(), std::move(own));
  self_made.shake_hands();
  CHECK(self_made.read().header.kind == FrameKind::goodbye);
  run.expect("self-signed certificate", 3);
}

TEST_CASE("the certificate must be that of the stage's cloud") {
  Bothered run;
  RawPeer south(run.port(), run.keys("south"));
  REQUIRE(south.shake_hands());
  south.write(hello_frame("north"));
  const Frame answer = south.read();
  CHECK(answer.header.kind == FrameKind::refuse);
  CHECK(contains(printable(answer.payload), "the certificate is of cloud south"));
  run.expect("stage 0 belongs to cloud north, the certificate is of cloud south", 1);

  RawPeer liar(run.port(), run.keys("north"));
  REQUIRE(liar.shake_hands());
  liar.write(hello_frame("south"));
  CHECK(liar.read().header.kind == FrameKind::refuse);
  run.expect("the process says south", 2);
}

TEST_CASE("other plans, data, steps, versions and places are refused with the reason") {
  Bothered run;
  int times = 0;
  const auto refused = [&](const Frame& frame, const std::string& reason) {
    RawPeer peer(run.port(), run.keys("north"));
    REQUIRE(peer.shake_hands());
    peer.write(frame);
    const Frame answer = peer.read();
    CAPTURE(reason);
    CHECK(answer.header.kind == FrameKind::refuse);
    CHECK(contains(printable(answer.payload), reason));
    run.expect(reason, ++times);
  };
  const auto with = [](const std::function<void(Hello&)>& change) {
    Frame frame = hello_frame();
    Hello hello;
    parse_hello(frame.payload, hello);
    change(hello);
    return control_frame(FrameKind::hello, 0x1234, 0, 1, encode_hello(hello));
  };
  refused(hello_frame("north", 0x99), "its plan 0000000000000099 is not 0000000000001234");
  refused(with([](Hello& h) { h.data_hash = 1; }), "its training data are not those of");
  refused(with([](Hello& h) { h.start_step = 5; }), "it starts at step 5");
  refused(with([](Hello& h) { h.connections = 2; }), "it wants 2 connections");
  refused(with([](Hello&) {}), "stage 0 (north) is connected already");
  Frame frame = hello_frame();
  frame.header.message.from = 9;
  refused(frame, "stage 9 has no business with stage 1 (mid)");
  frame = hello_frame();
  frame.header.message.to = 2;
  refused(frame, "this is stage 1 (mid), not stage 2");
  refused(control_frame(FrameKind::goodbye, 0x1234, 0, 1), "says no hello");

  std::mt19937_64 random(1);
  RawPeer newer(run.port(), run.keys("north"));
  REQUIRE(newer.shake_hands());
  auto bytes = encode_frame(hello_frame());
  put_le(bytes, 4, std::uint16_t{2});
  newer.write(bytes);
  CHECK(contains(printable(newer.read().payload), "wire version 2, here 1"));
  run.expect("wire version 2, here 1", ++times);
  RawPeer garbage(run.port(), run.keys("north"));
  REQUIRE(garbage.shake_hands());
  garbage.write(test::random_bytes(random, 1000));
  run.expect("not a frame of Nebula", ++times);
}

/// Stage 0 dials a stage 1; `change` makes one of them unfit. What stage 0 ends with.
std::string dial(
    const std::function<void(TransportOptions& lower, TransportOptions& higher)>& change) {
  test::TemporaryFolder folder;
  test::Log log;
  make_keys(folder / "keys", test::clouds());
  make_keys(folder / "foreign", test::clouds());
  auto lower = test::chain_options(0, 2, folder / "keys", log);
  auto higher = test::chain_options(1, 2, folder / "keys", log);
  change(lower, higher);
  if (lower.key_folder.empty()) lower.key_folder = folder / "foreign";
  if (higher.key_folder.empty()) higher.key_folder = folder / "foreign";
  Transport listening(higher);
  lower.peers[0].endpoint.port = listening.port();
  Transport dialling(lower);
  return run_error([&] { dialling.connect(); });
}

TEST_CASE("a stage that is refused, or meets a stranger, ends with the reason") {
  using Options = TransportOptions;
  const std::string plan = dial([](Options& lower, Options&) { lower.plan_hash = 1; });
  CHECK(contains(plan, "stage 1 (mid) at 127.0.0.1:"));
  CHECK(contains(plan, "refuses this process: its plan 0000000000000001 is not 0000000000001234"));
  CHECK(contains(dial([](Options& lower, Options&) { lower.own.cloud = "south"; }),
                 "refuses this process: stage 0 belongs to cloud north"));
  CHECK(contains(dial([](Options&, Options& higher) { higher.start_step = 3; }),
                 "stage 1 (mid) at step 3"));
  CHECK(contains(dial([](Options&, Options& higher) { higher.own.cloud = "south"; }),
                 "shows the certificate of cloud south"));
  // Whoever checks first refuses: the dialler, as the server's certificate comes first.
  CHECK(contains(dial([](Options&, Options& higher) { higher.key_folder.clear(); }),
                 "unable to get local issuer certificate"));
  CHECK(contains(dial([](Options& lower, Options&) { lower.key_folder.clear(); }),
                 "unable to get local issuer certificate"));
}

TEST_CASE("a stage that dials something that is no TLS ends with the reason") {
  test::TemporaryFolder folder;
  test::Log log;
  make_keys(folder / "keys", test::clouds());
  asio::io_context io;
  asio::ip::tcp::acceptor acceptor(io, {asio::ip::address_v4::loopback(), 0});
  auto answering = std::async(std::launch::async, [&] {
    asio::ip::tcp::socket socket(io);
    acceptor.accept(socket);
    asio::write(socket, asio::buffer(std::string("SSH-2.0-OpenSSH_9.2\r\n")));
    std::array<char, 1000> hello;
    boost::system::error_code error;
    while (!error) socket.read_some(asio::buffer(hello), error);
  });
  auto options = test::chain_options(0, 2, folder / "keys", log);
  options.peers[0].endpoint.port = acceptor.local_endpoint().port();
  Transport transport(options);
  CHECK(contains(run_error([&] { transport.connect(); }), "TLS fails: wrong version number"));
  answering.get();
}

TEST_CASE("a peer that is right but breaks the protocol ends the run, and is told why") {
  const auto after_welcome = [](const std::function<void(RawPeer&)>& misbehave, std::string& told) {
    test::TemporaryFolder folder;
    test::Log log;
    make_keys(folder / "keys", test::clouds());
    Transport transport(test::chain_options(1, 2, folder / "keys", log));
    RawPeer peer(transport.port(), make_tls_context(folder / "keys", "north"));
    REQUIRE(peer.shake_hands());
    peer.write(hello_frame());
    REQUIRE(peer.read().header.kind == FrameKind::welcome);
    misbehave(peer);
    const std::string why = run_error([&] { transport.receive(0, activation(0)); });
    told = printable(peer.read(FrameKind::abort).payload);
    return why;
  };
  Frame data;
  data.header.run = 0x1234;
  data.header.message = activation(0);
  data.header.length = data.header.total = 5;
  data.payload.resize(5);
  std::string told;

  std::vector<std::byte> bytes = encode_frame(data);
  bytes.back() ^= std::byte{1};
  CHECK(after_welcome([&](RawPeer& peer) { peer.write(bytes); }, told) ==
        "stage 0 (north) sent a frame whose checksum does not match");
  CHECK(contains(told, "checksum does not match"));
  Frame elsewhere = data;
  elsewhere.header.message.to = 2;
  CHECK(contains(after_welcome([&](RawPeer& peer) { peer.write(elsewhere); }, told),
                 "belongs elsewhere: activation 0 from stage 0 to stage 2"));
  CHECK(contains(after_welcome([&](RawPeer& peer) { peer.write(hello_frame()); }, told),
                 "a greeting in the middle of a run"));
  std::mt19937_64 random(1);
  CHECK(contains(after_welcome([&](RawPeer& p) { p.write(test::random_bytes(random, 64)); }, told),
                 "not a frame of Nebula"));
}

TEST_CASE("a message that comes twice is dropped and counted") {
  test::TemporaryFolder folder;
  test::Log log;
  make_keys(folder / "keys", test::clouds());
  Transport transport(test::chain_options(1, 2, folder / "keys", log));
  RawPeer peer(transport.port(), make_tls_context(folder / "keys", "north"));
  REQUIRE(peer.shake_hands());
  peer.write(hello_frame());
  REQUIRE(peer.read().header.kind == FrameKind::welcome);
  Frame data;
  data.header.run = 0x1234;
  for (int i = 0; i < 3; ++i) {
    data.header.message = activation(i);
    data.header.length = data.header.total = 1000;
    data.payload.assign(1000, std::byte(i));
    for (int times = 0; times <= i; ++times) peer.write(data);
  }
  for (int i = 0; i < 3; ++i) {
    CHECK(transport.receive(0, activation(i)).payload ==
          std::vector<std::byte>(1000, std::byte(i)));
  }
  peer.write(control_frame(FrameKind::goodbye, 0x1234, 0, 1));
  CHECK(contains(run_error([&] { transport.receive(0, activation(0)); }), "has ended its run"));
  CHECK(transport.stats().at(0).duplicates == 3);
  CHECK(transport.stats().at(0).messages_received == 3);
}

}  // namespace
}  // namespace nebula
