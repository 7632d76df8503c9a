#include "exec/supervise.hpp"

#include <chrono>
#include <cstring>
#include <iostream>
#include <map>
#include <thread>

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"

namespace nebula {
namespace {

// The one piece of state that a signal handler can reach.
std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void on_signal(int number) {
  if (stop_requested.exchange(true)) {
    signal(number, SIG_DFL);
    raise(number);
  }
}

pid_t start(const Child& child) {
  std::vector<char*> arguments;
  std::string self = "/proc/self/exe";
  arguments.push_back(self.data());
  std::vector<std::string> copies = child.arguments;
  for (std::string& argument : copies) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) throw RunError(child.name + " can't be started: " + std::strerror(errno));
  if (pid == 0) {
    // Own group: a Ctrl-C at the terminal reaches the children through the parent alone, once.
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    execv("/proc/self/exe", arguments.data());
    _exit(127);
  }
  return pid;
}

int severity(int code) {
  return code == 0 ? 0 : code == 3 ? 1 : code == 2 ? 2 : 3;
}

int exit_code(const std::string& name, int status, bool ended_by_us) {
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  if (ended_by_us && WTERMSIG(status) == SIGTERM) {
    std::cerr << name << " was ended, because another one failed\n";
    return 1;
  }
  std::cerr << name << " was ended by signal " << WTERMSIG(status) << " ("
            << strsignal(WTERMSIG(status)) << ")\n";
  return 1;
}

}  // namespace

const std::atomic<bool>& stop_flag() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  return stop_requested;
}

int supervise(const std::vector<Child>& children, const std::atomic<bool>& stop, double grace_s) {
  using Steady = std::chrono::steady_clock;
  std::map<pid_t, std::string> running;
  for (const Child& child : children) running[start(child)] = child.name;
  const auto tell_all = [&](int signal_number) {
    for (const auto& [pid, name] : running) kill(pid, signal_number);
  };
  int worst = 0;
  bool told_to_stop = false;
  bool told_to_end = false;
  Steady::time_point failed_at = Steady::time_point::max();
  while (!running.empty()) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid > 0 && running.contains(pid)) {
      const int code = exit_code(running[pid], status, told_to_end);
      running.erase(pid);
      if (severity(code) > severity(worst)) worst = code;
      if (code != 0 && code != 3) failed_at = std::min(failed_at, Steady::now());
      continue;
    }
    if (stop && !told_to_stop) {
      tell_all(SIGINT);
      told_to_stop = true;
    }
    const auto waited = Steady::now() - std::min(failed_at, Steady::now());
    if (std::chrono::duration<double>(waited).count() > grace_s && !told_to_end) {
      tell_all(SIGTERM);
      told_to_end = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return worst;
}

}  // namespace nebula
