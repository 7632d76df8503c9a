#include <algorithm>
#include <chrono>
#include <thread>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec/transport.hpp"
#include "tests/catch.hpp"
#include "tests/exec/wire_fixture.hpp"

namespace nebula {
namespace {

using test::activation;
using test::Chain;
using test::contains;
using test::gradient;
using test::run_error;

/// Stage 0 of two in a process of its own; it connects, sends activation 0 and then stands there.
/// Forked before this process has threads.
class Child {
 public:
  explicit Child(const std::string& key_folder) {
    int ends[2];
    if (::pipe(ends) != 0) throw RunError("no pipe");
    port_pipe_ = ends[1];
    process_ = ::fork();
    if (process_ != 0) {
      ::close(ends[0]);
      return;
    }
    int port = 0;
    if (::read(ends[0], &port, sizeof port) == sizeof port) run(key_folder, port);
    ::_exit(1);
  }
  ~Child() {
    ::close(port_pipe_);
    signal(SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void dial(int port) {
    if (::write(port_pipe_, &port, sizeof port) != sizeof port) throw RunError("the child is gone");
  }
  void signal(int number) { ::kill(process_, number); }

 private:
  static void run(const std::string& key_folder, int port) {
    try {
      test::Log log;
      auto options = test::chain_options(0, 2, key_folder, log);
      options.peers[0].endpoint.port = port;
      Transport transport(options);
      transport.connect();
      transport.send(0, activation(0), std::vector<std::byte>(1000));
      std::this_thread::sleep_for(std::chrono::minutes(5));
    } catch (const std::exception&) {
    }
  }

  int port_pipe_ = -1;
  pid_t process_ = -1;
};

TEST_CASE("a peer that is killed ends the run at once, now and later") {
  test::TemporaryFolder folder;
  test::Log log;
  make_keys(folder / "keys", test::clouds());
  Child child(folder / "keys");
  Transport transport(test::chain_options(1, 2, folder / "keys", log));
  child.dial(transport.port());
  transport.connect();
  CHECK(transport.receive(0, activation(0)).payload.size() == 1000);

  auto blocked = std::async(
      std::launch::async, [&] { return run_error([&] { transport.receive(0, activation(1)); }); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  child.signal(SIGKILL);
  CHECK(contains(blocked.get(), "stage 0 (north) is gone: "));
  CHECK(
      contains(run_error([&] { transport.receive(0, activation(2)); }), "stage 0 (north) is gone"));
  CHECK(
      contains(run_error([&] { transport.send(0, gradient(0), {}); }), "stage 0 (north) is gone"));
  CHECK(contains(run_error([&] { transport.close(); }), "stage 0 (north) is gone"));
}

TEST_CASE("a peer that stands still is waited for, not given up as gone") {
  test::TemporaryFolder folder;
  test::Log log;
  make_keys(folder / "keys", test::clouds());
  Child child(folder / "keys");
  auto options = test::chain_options(1, 2, folder / "keys", log);
  options.host_timeout_s = 0.5;
  options.message_timeout_s = 3.5;
  Transport transport(options);
  child.dial(transport.port());
  transport.connect();
  transport.receive(0, activation(0));
  child.signal(SIGSTOP);
  // More than its kernel takes, so that the window closes as well.
  for (int i = 0; i < 20; ++i) transport.send(0, gradient(i), std::vector<std::byte>(1 << 20));
  CHECK(contains(run_error([&] { transport.receive(0, activation(1)); }),
                 "waited 3.50 s for activation 1 from stage 0 (north) in step 0"));
}

TEST_CASE("the reason of an abort reaches every stage") {
  Chain chain(3, 2);
  std::vector<std::future<std::string>> ends;
  // As a worker does: whoever learns of a failure aborts with it.
  const auto worker = [](Transport& t, const Message& waits_for) {
    const std::string why = run_error([&] { t.receive(0, waits_for); });
    t.abort(why);
    return why;
  };
  ends.push_back(std::async(std::launch::async, worker, std::ref(chain.at(0)), gradient(0)));
  ends.push_back(std::async(std::launch::async, worker, std::ref(chain.at(1)), gradient(0, 2, 1)));
  chain.at(2).abort("the loss is not a number");
  CHECK(ends[1].get() == "stage 2 (south) failed: the loss is not a number");
  CHECK(ends[0].get() == "stage 1 (mid) failed: stage 2 (south) failed: the loss is not a number");
  CHECK(contains(run_error([&] { chain.at(2).receive(0, activation(0, 1, 2)); }), "given up"));
}

TEST_CASE("a stage that just goes tells the others") {
  Chain chain(2);
  chain.transports[1].reset();
  CHECK(run_error([&] { chain.at(0).receive(0, gradient(0)); }) ==
        "stage 1 (mid) failed: it stopped without a goodbye");
}

TEST_CASE("a peer that is not there is named, with what stands in the way") {
  test::TemporaryFolder folder;
  test::Log log;
  make_keys(folder / "keys", test::clouds());
  auto options = test::chain_options(1, 3, folder / "keys", log, 2);
  options.connect_timeout_s = 0.5;
  {  // A port where nobody listens.
    const Transport other(test::chain_options(2, 3, folder / "keys", log));
    options.peers[1].endpoint.port = other.port();
  }
  Transport transport(options);
  const std::string why = run_error([&] { transport.connect(); });
  CHECK(contains(why, "stage 1 (mid) found not all others within 500 ms"));
  CHECK(contains(why, "stage 0 (north): 0 of 2 connections"));
  CHECK(contains(why, "stage 2 (south) at 127.0.0.1:"));
  CHECK(contains(why, "Connection refused"));
}

TEST_CASE("stages may start in any order") {
  test::TemporaryFolder folder;
  test::Log log;
  make_keys(folder / "keys", test::clouds());
  auto lower = test::chain_options(0, 2, folder / "keys", log, 3);
  auto higher = test::chain_options(1, 2, folder / "keys", log, 3);
  {
    const Transport other(higher);
    higher.own.port = lower.peers[0].endpoint.port = other.port();
  }
  Transport first(lower);
  auto connecting = std::async(std::launch::async, [&] { first.connect(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  Transport second(higher);
  CHECK_NOTHROW(second.connect());
  CHECK_NOTHROW(connecting.get());
}

}  // namespace
}  // namespace nebula
