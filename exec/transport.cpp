#include "exec/transport.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <random>
#include <thread>
#include <utility>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <signal.h>

#include "core/error.hpp"
#include "core/units.hpp"
#include "exec/clocks.hpp"
#include "exec/dialer.hpp"
#include "exec/listener.hpp"
#include "exec/peer_board.hpp"
#include "exec/peer_link.hpp"
#include "exec/tls.hpp"

namespace nebula {
namespace asio = boost::asio;
namespace {

using Clock = std::chrono::steady_clock;

// Time for the reason of an abort to leave and be read.
constexpr double abort_timeout_s = 1;
// First report that a message is waited for; later ones at twice the time, but at least once in
// longest_report_s.
constexpr double first_report_s = 10;
constexpr double longest_report_s = 60;

Clock::time_point after(double s) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

TransportOptions checked(TransportOptions options) {
  const std::string where = "transport of " + stage_name(options.own);
  std::vector<int> stages{options.own.stage};
  for (const PeerOptions& peer : options.peers) {
    const int stage = peer.endpoint.stage;
    if (std::find(stages.begin(), stages.end(), stage) != stages.end()) {
      throw InputError(where, "stage " + std::to_string(stage) + " is listed twice");
    }
    if (stage < 0 || stage > 65535) throw InputError(where, "stages must lie between 0 and 65535");
    stages.push_back(stage);
    if (peer.connections < 1 || peer.connections > max_frame_parts) {
      throw InputError(where, std::to_string(peer.connections) + " connections to " +
                                  stage_name(peer.endpoint) + ", expected 1 to " +
                                  std::to_string(max_frame_parts));
    }
  }
  return options;
}

// Signals are the main thread's business: a thread started meanwhile takes none.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

std::uint64_t random_process() {
  std::random_device random;
  return (std::uint64_t{random()} << 32 | random()) | 1;
}

}  // namespace

struct Transport::Impl {
  explicit Impl(TransportOptions given);
  ~Impl() { stop(); }

  void start_dialers();
  void stop();
  PeerLink& link(int stage);
  void give_up(const std::string& why);
  void log(LogLevel level, const std::string& text) const {
    if (options.log) options.log(level, text);
  }
  std::string missing() const;

  // What handlers that never ran may still touch when the context goes is declared before it.
  const TransportOptions options;
  const WallClock clock;
  std::atomic<std::int64_t> queued_bytes = 0;
  Mailbox mailbox;
  PeerBoard board;
  asio::ssl::context tls;
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  const LinkServices services;
  std::map<int, std::unique_ptr<PeerLink>> links;
  std::unique_ptr<Listener> listener;
  std::vector<std::shared_ptr<Dialer>> dialers;
  std::atomic<bool> over = false;
  std::thread thread;
};

Transport::Impl::Impl(TransportOptions given)
    : options(checked(std::move(given))),
      mailbox(options.receive_buffer_bytes),
      tls(options.peers.empty() ? asio::ssl::context(asio::ssl::context::tls)
                                : make_tls_context(options.key_folder, options.own.cloud)),
      services{io, options, clock, mailbox, board, queued_bytes, random_process()} {
  bool dialled = false;
  for (const PeerOptions& peer : options.peers) {
    links.emplace(peer.endpoint.stage, std::make_unique<PeerLink>(services, peer));
    dialled = dialled || peer.endpoint.stage < options.own.stage;
  }
  if (dialled) {
    listener = std::make_unique<Listener>(
        io, tls, options,
        [this](const FrameHeader& header, const Hello& hello, const std::string& cloud,
               const std::shared_ptr<TlsStream>& stream) -> std::string {
          const int from = header.message.from;
          const auto found = links.find(from);
          if (header.message.to != options.own.stage) {
            return "this is " + stage_name(options.own) + ", not stage " +
                   std::to_string(header.message.to);
          }
          if (found == links.end() || from > options.own.stage) {
            return "stage " + std::to_string(from) + " has no business with " +
                   stage_name(options.own);
          }
          PeerLink& peer = *found->second;
          std::string why = peer.refusal(header, hello, cloud);
          if (!why.empty()) {
            board.update(from, [&](PeerState& s) { s.problem = "was refused: " + why; });
            return why;
          }
          const Frame welcome = peer.greeting(FrameKind::welcome, hello.connection);
          peer.join(hello, stream, &welcome);
          return {};
        });
    listener->start();
  }
  const SignalsBlocked blocked;
  thread = std::thread([this] {
    try {
      io.run();
    } catch (const std::exception& error) {
      io.stop();
      give_up(std::string("transport failed: ") + error.what());
    }
  });
}

void Transport::Impl::give_up(const std::string& why) {
  if (!mailbox.failure().empty()) return;  // each connection meets the same obstacle
  log(LogLevel::warning, why);
  mailbox.fail(why);
  board.fail(why);
}

void Transport::Impl::start_dialers() {
  for (const auto& [stage, peer] : links) {
    if (stage < options.own.stage) continue;
    const Endpoint& to = peer->peer().endpoint;
    const std::string at = peer->name() + " at " + to.host + ":" + std::to_string(to.port);
    for (int i = 0; i < peer->peer().connections; ++i) {
      Dialer::Outcomes outcomes;
      outcomes.welcome = [&link = *peer](const FrameHeader& header, const Hello& hello,
                                         const std::string& cloud,
                                         const std::shared_ptr<TlsStream>& stream) {
        std::string why = link.refusal(header, hello, cloud);
        if (why.empty()) link.join(hello, stream, nullptr);
        return why;
      };
      outcomes.give_up = [this, at](const std::string& why) { give_up(at + " " + why); };
      outcomes.problem = [this, to](const std::string& why) {
        board.update(to.stage, [&](PeerState& state) { state.problem = why; });
      };
      dialers.push_back(std::make_shared<Dialer>(io, tls, to, peer->greeting(FrameKind::hello, i),
                                                 options.handshake_timeout_s, std::move(outcomes)));
      dialers.back()->start();
    }
  }
}

void Transport::Impl::stop() {
  over = true;
  asio::post(io, [this] {
    if (listener) listener->stop();
    for (const auto& dialer : dialers) dialer->stop();
    for (const auto& [stage, peer] : links) peer->close();
    io.stop();
  });
  if (thread.joinable()) thread.join();
}

PeerLink& Transport::Impl::link(int stage) {
  const auto found = links.find(stage);
  if (found == links.end()) {
    throw RunError("stage " + std::to_string(stage) + " is no peer of " + stage_name(options.own));
  }
  return *found->second;
}

// Who isn't connected yet, and why as far as we know.
std::string Transport::Impl::missing() const {
  std::string text;
  for (const auto& [stage, state] : board.states()) {
    if (state.ready) continue;
    const PeerLink& peer = *links.at(stage);
    const Endpoint& at = peer.peer().endpoint;
    text += text.empty() ? "" : "; ";
    text += peer.name();
    if (stage > options.own.stage) text += " at " + at.host + ":" + std::to_string(at.port);
    text += ": ";
    if (!state.problem.empty()) {
      text += state.problem;
    } else if (state.joined == peer.peer().connections) {
      text += "does not answer";
    } else {
      text += std::to_string(state.joined) + " of " + std::to_string(peer.peer().connections) +
              " connections";
    }
  }
  return text;
}

Transport::Transport(TransportOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

Transport::~Transport() {
  const std::string failure = impl_->mailbox.failure();
  abort(failure.empty() ? "it stopped without a goodbye" : failure);
}

int Transport::port() const {
  return impl_->listener ? impl_->listener->port() : 0;
}

void Transport::connect() {
  Impl& self = *impl_;
  asio::post(self.io, [&self] { self.start_dialers(); });
  const bool done = self.board.wait(
      after(self.options.connect_timeout_s), [](const PeerState& state) { return state.ready; },
      true);
  if (const std::string failure = self.mailbox.failure(); !failure.empty()) throw RunError(failure);
  if (done) return;
  throw RunError(stage_name(self.options.own) + " found not all others within " +
                 format_seconds(self.options.connect_timeout_s) + ": " + self.missing());
}

void Transport::send(int step, const Message& message, std::vector<std::byte> payload) {
  Impl& self = *impl_;
  if (const std::string failure = self.mailbox.failure(); !failure.empty()) throw RunError(failure);
  PeerLink& link = self.link(message.to);
  const auto size = std::int64_t(payload.size());
  if (size > self.options.send_buffer_bytes - self.queued_bytes.load()) {
    throw RunError("more than " + format_bytes(double(self.options.send_buffer_bytes)) +
                   " wait to be sent to " + link.name() + ": the line is too slow for this plan");
  }
  FrameHeader header;
  header.run = self.options.plan_hash;
  header.step = step;
  header.message = message;
  header.sent_ns = self.clock.now_ns();
  auto queued = std::make_shared<const QueuedPayload>(std::move(payload), self.queued_bytes);
  asio::post(self.io,
             [&link, header, queued = std::move(queued), ready_ns = steady_ns()]() mutable {
               link.send(header, std::move(queued), ready_ns);
             });
}

Received Transport::receive(int step, const Message& message) {
  Impl& self = *impl_;
  const std::string& from = self.link(message.from).name();
  const bool numbered =
      message.kind == MessageKind::activation || message.kind == MessageKind::gradient;
  const std::string what = std::string(to_string(message.kind)) +
                           (numbered ? " " + std::to_string(message.micro_batch) : "") + " from " +
                           from;
  const double timeout_s = self.options.message_timeout_s;
  const auto begin = Clock::now();
  for (double report_s = first_report_s;;) {
    const double wait_s = std::min(report_s, timeout_s);
    const auto until =
        begin + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(wait_s));
    if (auto received = self.mailbox.take({step, message}, until)) return std::move(*received);
    if (wait_s >= timeout_s) {
      throw RunError("waited " + format_seconds(timeout_s) + " for " + what + " in step " +
                     std::to_string(step) + ": it is connected, but sent nothing");
    }
    self.log(LogLevel::info,
             "waiting " + std::to_string(std::int64_t(report_s)) + " s for " + what);
    report_s += std::min(report_s, longest_report_s);
  }
}

void Transport::abort(const std::string& reason) noexcept {
  try {
    Impl& self = *impl_;
    if (self.over.exchange(true)) return;
    self.mailbox.fail("the run was given up: " + reason);
    self.board.fail(reason);
    asio::post(self.io, [&self, reason] {
      for (const auto& dialer : self.dialers) dialer->stop();
      for (const auto& [stage, peer] : self.links) peer->abort(reason);
    });
    self.board.wait(
        after(abort_timeout_s), [](const PeerState& state) { return state.closed; }, false);
  } catch (const std::exception&) {
    // No memory for a last word: the peers see a closed connection.
  }
}

void Transport::close() {
  Impl& self = *impl_;
  if (const std::string failed = self.mailbox.failure(); !failed.empty()) {
    abort(failed);
    throw RunError(failed);
  }
  if (self.over.exchange(true)) return;
  asio::post(self.io, [&self] {
    for (const auto& [stage, peer] : self.links) peer->say_goodbye();
  });
  const bool done = self.board.wait(
      after(self.options.close_timeout_s), [](const PeerState& state) { return state.closed; },
      true);
  const std::int64_t unsent = self.queued_bytes.load();
  const std::string failure = self.mailbox.failure();
  self.stop();
  if (!failure.empty()) throw RunError(failure);
  if (done) return;
  if (unsent > 0) {
    throw RunError(format_bytes(double(unsent)) + " were not sent within " +
                   format_seconds(self.options.close_timeout_s) + " after the end");
  }
  self.log(LogLevel::warning, "not all peers ended within " +
                                  format_seconds(self.options.close_timeout_s) + "; leaving");
}

std::int64_t Transport::now_ns() const {
  return impl_->clock.now_ns();
}

std::vector<PeerStats> Transport::stats() const {
  Impl& self = *impl_;
  std::vector<PeerStats> all;
  const auto collect = [&] {
    for (const auto& [stage, peer] : self.links) all.push_back(peer->stats());
  };
  if (self.io.stopped()) {
    collect();
    return all;
  }
  std::promise<void> done;
  asio::post(self.io, [&] {
    collect();
    done.set_value();
  });
  done.get_future().wait();
  return all;
}

int Transport::refused() const {
  return impl_->listener ? impl_->listener->refused() : 0;
}

}  // namespace nebula
