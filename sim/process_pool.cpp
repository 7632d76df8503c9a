#include "sim/process_pool.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <optional>

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"

namespace nebula {
namespace {

enum class Note : std::uint32_t { begun, done, failed };

// What a child writes, followed by `size` bytes.
struct Header {
  Note note = Note::begun;
  std::uint64_t task = 0;
  std::uint64_t size = 0;
};

[[noreturn]] void fail(const std::string& what) {
  throw RunError("can't start a process for the simulation: " + what + ": " + strerror(errno));
}

// The next task that nobody has taken, in memory that parent and children share.
class Ticket {
 public:
  Ticket() {
    void* page = mmap(nullptr, sizeof(std::atomic<std::size_t>), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) fail("mmap");
    next_ = new (page) std::atomic<std::size_t>(0);
  }
  ~Ticket() { munmap(next_, sizeof *next_); }
  Ticket(const Ticket&) = delete;
  Ticket& operator=(const Ticket&) = delete;

  std::size_t take() { return next_->fetch_add(1); }
  std::size_t taken() const { return next_->load(); }

 private:
  std::atomic<std::size_t>* next_ = nullptr;
};

void write_all(int file, const void* data, std::size_t size) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = write(file, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    // Nobody listens any more.
    if (written <= 0) _exit(1);
    bytes += written;
    size -= std::size_t(written);
  }
}

void tell(int file, Note note, std::size_t task, const std::string& text) {
  const Header header{note, task, text.size()};
  write_all(file, &header, sizeof header);
  write_all(file, text.data(), text.size());
}

// A child ends with its first failure: the state it worked on may be broken.
[[noreturn]] void work(int file, Ticket& ticket, std::size_t count, std::size_t most,
                       const std::function<std::string(std::size_t)>& task) {
  for (std::size_t i = 0; i < most; ++i) {
    const std::size_t index = ticket.take();
    if (index >= count) break;
    tell(file, Note::begun, index, "");
    try {
      tell(file, Note::done, index, task(index));
    } catch (const std::exception& error) {
      tell(file, Note::failed, index, error.what());
      break;
    } catch (...) {
      tell(file, Note::failed, index, "the simulation failed without a message");
      break;
    }
  }
  // Not exit(): buffers and exit handlers belong to the parent.
  _exit(0);
}

class Child {
 public:
  template <typename Work>
  explicit Child(const Work& run) {
    int ends[2];
    if (pipe(ends) != 0) fail("pipe");
    // Libraries in the child may flush what lies in its copies of our buffers.
    std::fflush(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      close(ends[0]);
      run(ends[1]);
    }
    close(ends[1]);
    file_ = ends[0];
    if (pid_ < 0) {
      close(file_);
      fail("fork");
    }
  }
  ~Child() {
    close(file_);
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  int file() const { return file_; }

  // Reads what is there; false at the end.
  bool read_some() {
    char bytes[65536];
    const ssize_t got = read(file_, bytes, sizeof bytes);
    if (got < 0) return errno == EINTR || errno == EAGAIN;
    buffer_.append(bytes, std::size_t(got));
    return got > 0;
  }

  // Takes the next complete note out of what was read.
  std::optional<std::pair<Header, std::string>> next_note() {
    Header header;
    if (buffer_.size() < sizeof header) return {};
    std::memcpy(&header, buffer_.data(), sizeof header);
    if (buffer_.size() < sizeof header + header.size) return {};
    std::string text = buffer_.substr(sizeof header, header.size);
    buffer_.erase(0, sizeof header + header.size);
    current_ = header.note == Note::begun ? std::optional(header.task) : std::nullopt;
    return {{header, std::move(text)}};
  }

  // The task it was at.
  std::optional<std::size_t> current() const { return current_; }

  // How it ended, empty when as it should.
  std::string join() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = 0;
    if (WIFSIGNALED(status)) {
      return "the simulating process was killed by signal " + std::to_string(WTERMSIG(status)) +
             " (" + strsignal(WTERMSIG(status)) + ")";
    }
    if (WEXITSTATUS(status) == 0 && !current_) return "";
    return "the simulating process ended early, with code " + std::to_string(WEXITSTATUS(status));
  }

 private:
  pid_t pid_ = 0;
  int file_ = -1;
  std::string buffer_;
  std::optional<std::size_t> current_;
};

struct Outcome {
  std::string text;
  bool failed = false;
};

// The number of tasks that it finished.
std::size_t take_notes(Child& child, std::vector<Outcome>& outcomes) {
  std::size_t finished = 0;
  while (auto note = child.next_note()) {
    auto& [header, text] = *note;
    if (header.note == Note::begun) continue;
    outcomes[header.task] = {std::move(text), header.note == Note::failed};
    ++finished;
  }
  return finished;
}

}  // namespace

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

std::vector<std::string> run_in_children(std::size_t count, const PoolOptions& options,
                                         const std::function<std::string(std::size_t)>& task) {
  const std::size_t workers = std::size_t(options.workers > 0 ? options.workers : usable_cores());
  const std::size_t most = std::max<std::size_t>(1, options.tasks_per_process);
  Ticket ticket;
  std::vector<Outcome> outcomes(count);
  std::vector<std::unique_ptr<Child>> children;
  std::size_t open = count;
  while (open > 0) {
    while (children.size() < std::min(workers, open) && ticket.taken() < count) {
      children.push_back(
          std::make_unique<Child>([&](int file) { work(file, ticket, count, most, task); }));
    }
    std::vector<pollfd> files;
    for (const auto& child : children) files.push_back({child->file(), POLLIN, 0});
    if (poll(files.data(), files.size(), -1) < 0 && errno != EINTR) fail("poll");
    for (std::size_t i = files.size(); i-- > 0;) {
      if (files[i].revents == 0) continue;
      const bool more = children[i]->read_some();
      open -= take_notes(*children[i], outcomes);
      if (more) continue;
      const auto at = children[i]->current();
      const std::string problem = children[i]->join();
      if (!problem.empty() && !at) throw RunError(problem);
      if (at) {
        outcomes[*at] = {problem, true};
        --open;
      }
      children.erase(children.begin() + std::ptrdiff_t(i));
    }
  }
  std::vector<std::string> results;
  for (Outcome& outcome : outcomes) {
    if (outcome.failed) throw RunError(outcome.text);
    results.push_back(std::move(outcome.text));
  }
  return results;
}

}  // namespace nebula
