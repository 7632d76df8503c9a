#include "exec/mailbox.hpp"

#include <thread>

#include "tests/catch.hpp"
#include "tests/exec/wire_fixture.hpp"

namespace nebula {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::activation;
using test::run_error;

TEST_CASE("unclaimed bytes are bounded and come free when claimed") {
  Mailbox mailbox(100);
  CHECK(mailbox.reserve(60));
  CHECK(!mailbox.reserve(41));
  CHECK(mailbox.reserve(40));
  Received received;
  received.payload.resize(60);
  mailbox.put({0, activation(0)}, std::move(received));
  CHECK(!mailbox.reserve(1));
  CHECK(mailbox.take({0, activation(0)}, steady_clock::now())->payload.size() == 60);
  CHECK(mailbox.reserve(60));
  CHECK(!mailbox.reserve(1));
}

TEST_CASE("take waits for its own key and gives up in time") {
  Mailbox mailbox(100);
  mailbox.put({0, activation(0)}, {});
  CHECK(!mailbox.take({1, activation(0)}, steady_clock::now() + milliseconds(10)));
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(20));
    Received received;
    received.wire_bytes = 7;
    mailbox.put({1, activation(0)}, std::move(received));
  });
  CHECK(
      mailbox.take({1, activation(0)}, steady_clock::now() + std::chrono::minutes(1))->wire_bytes ==
      7);
  later.join();
}

TEST_CASE("what has arrived can be taken from a stage that ended, the rest never comes") {
  Mailbox mailbox(100);
  mailbox.put({0, activation(0)}, {});
  mailbox.end(0, "stage 0 (north) has ended its run");
  CHECK(mailbox.take({0, activation(0)}, steady_clock::now()));
  CHECK(run_error([&] {
          mailbox.take({0, activation(1)}, steady_clock::time_point::max());
        }) ==
        "stage 0 (north) has ended its run; activation 1 from stage 0 to stage 1 of step 0 will "
        "never come");
}

TEST_CASE("the first failure wakes and stays") {
  Mailbox mailbox(100);
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(20));
    mailbox.fail("first");
    mailbox.fail("second");
  });
  CHECK(run_error([&] {
          mailbox.take({0, activation(0)}, steady_clock::time_point::max());
        }) == "first");
  later.join();
  CHECK(mailbox.failure() == "first");
}

}  // namespace
}  // namespace nebula
