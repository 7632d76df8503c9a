#include "traces/trace_writer.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"
#include "tests/catch.hpp"
#include "tests/traces/fixture.hpp"
#include "traces/trace_reader.hpp"

using namespace nebula;
using nebula::test::TemporaryFolder;

namespace {

TraceInfo example_info() {
  TraceInfo info = describe(test::make_plan({4, 6}, {"a", "b"}), 1);
  info.program = "nebula-exec 0.1.0";
  info.run = "52f0";
  info.emulated = true;
  info.origin_unix_ns = 1'700'000'000'123'456'789;
  return info;
}

/// Any event that the vocabulary allows.
Event random_event(std::mt19937_64& random) {
  const auto pick = [&random](int n) { return int(random() % std::uint64_t(n)); };
  Event event;
  event.kind = EventKind(pick(8));
  event.step = pick(1000);
  event.stage = pick(2);
  event.start_s = double(random() % 1'000'000) * 1e-6;
  event.end_s = event.start_s + double(random() % 1000) * 1e-6;
  if (event.kind == EventKind::op) {
    event.op = {OpKind(pick(7)), pick(32), pick(3)};
    event.micro_batch = event.op.micro_batch;
  } else if (event.kind == EventKind::wait || event.kind == EventKind::encode ||
             event.kind == EventKind::decode || event.kind == EventKind::transfer) {
    event.message = MessageKind(pick(5));
    event.peer = pick(2);
    event.micro_batch = pick(32) - 1;
    if (event.kind == EventKind::transfer) event.bytes = double(random() % 100'000);
  }
  return event;
}

std::vector<Event> random_events(int count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Event> events;
  for (int i = 0; i < count; ++i) events.push_back(random_event(random));
  return events;
}

/// In a child process: event i ends at i seconds, so that a reader sees gaps.
void record_for_ever(const std::string& path) {
  TraceWriter writer(path, example_info(), {0.05, 64});
  for (int i = 0;; ++i) {
    Event event;
    event.step = i;
    event.end_s = i;
    writer.record(event);
    if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

/// 0 also while there is no trace yet.
std::size_t rows_in(const std::string& path) {
  try {
    return read_trace(path).events.size();
  } catch (const InputError&) {
    return 0;
  }
}

/// Kills a recording process some time after its first hundred rows.
void kill_a_writer(const std::string& path, std::chrono::milliseconds after) {
  std::filesystem::remove(path);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    try {
      record_for_ever(path);
    } catch (...) {
    }
    _exit(1);
  }
  for (int i = 0; i < 10'000 && rows_in(path) < 100; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  std::this_thread::sleep_for(after);
  kill(child, SIGKILL);
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFSIGNALED(status));
}

/// "" when the command isn't installed.
std::string command_output(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string output;
  char buffer[4096];
  while (const std::size_t n = fread(buffer, 1, sizeof buffer, pipe)) output.append(buffer, n);
  return pclose(pipe) == 0 ? output : "";
}

std::string python_with_h5py() {
  for (const std::string python : {"/usr/bin/python3", "python3"})
    if (!command_output(python + " -c 'import h5py; print(1)' 2>/dev/null").empty()) return python;
  return "";
}

}  // namespace

TEST_CASE("what is recorded is what is read") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.h5");
  const TraceInfo info = example_info();
  const int count = GENERATE(0, 1, 63, 64, 65, 1000);
  const std::vector<Event> events = random_events(count, 7);
  {
    TraceWriter writer(path, info, {0.001, 64});
    for (const Event& event : events) writer.record(event);
    writer.record_metrics({3, 4.5, 0.25, 1e-3, 4096, 0.75, 1e9});
    writer.record_clock({0, -0.002, 0.0005});
    writer.close();
    writer.close();
  }
  const Trace trace = read_trace(path);
  CHECK(trace.complete);
  CHECK(trace.info == info);
  CHECK(trace.events == events);
  REQUIRE(trace.metrics.size() == 1);
  CHECK(trace.metrics[0].step == 3);
  CHECK(trace.metrics[0].loss == 4.5);
  CHECK(trace.metrics[0].grad_norm == 0.25);
  CHECK(trace.metrics[0].learning_rate == 1e-3);
  CHECK(trace.metrics[0].tokens == 4096);
  CHECK(trace.metrics[0].step_s == 0.75);
  CHECK(trace.metrics[0].peak_bytes == 1e9);
  CHECK(trace.clocks == std::vector<ClockOffset>{{0, -0.002, 0.0005}});
  CHECK(parse_plan(trace.info.plan, path) == test::make_plan({4, 6}, {"a", "b"}));
}

TEST_CASE("several threads record into one trace") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.h5");
  constexpr int threads = 4;
  constexpr int each = 5000;
  {
    TraceWriter writer(path, example_info(), {0.001, 256});
    std::vector<std::thread> workers;
    for (int t = 0; t < threads; ++t)
      workers.emplace_back([&writer, t] {
        for (int i = 0; i < each; ++i) {
          Event event;
          event.stage = t % 2;
          event.op.chunk = t;
          event.step = i;
          writer.record(event);
        }
      });
    for (std::thread& worker : workers) worker.join();
  }
  const Trace trace = read_trace(path);
  REQUIRE(trace.events.size() == threads * each);
  std::vector<int> next(threads, 0);
  for (const Event& event : trace.events) {
    // Each thread's events are all there and in its order.
    CHECK(event.step == next[std::size_t(event.op.chunk)]++);
  }
}

TEST_CASE("a trace can be read while it grows") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.h5");
  TraceWriter writer(path, example_info(), {0.001, 64});
  CHECK_FALSE(read_trace(path).complete);
  writer.record(random_events(1, 1)[0]);
  for (int i = 0; i < 10'000 && rows_in(path) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(rows_in(path) == 1);
}

TEST_CASE("the trace of a killed process is readable") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.h5");
  for (int round = 0; round < 10; ++round) {
    kill_a_writer(path, std::chrono::milliseconds(round * 11));
    const Trace trace = read_trace(path);
    CHECK_FALSE(trace.complete);
    CHECK(trace.events.size() >= 100);
    for (std::size_t i = 0; i < trace.events.size(); ++i) {
      REQUIRE(trace.events[i].step == int(i));
      REQUIRE(trace.events[i].end_s == double(i));
    }
  }
}

TEST_CASE("h5dump and h5py read the trace of a killed process") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.h5");
  kill_a_writer(path, std::chrono::milliseconds(5));
  const std::size_t rows = read_trace(path).events.size();

  if (!command_output("command -v h5dump").empty()) {
    const std::string dump = command_output("h5dump -d /events -s 1 -c 1 " + path);
    // Enum columns show their names.
    CHECK(dump.find(" op,\n") != std::string::npos);
    CHECK(dump.find(" forward,\n") != std::string::npos);
    CHECK(dump.find("ATTRIBUTE \"unit of start_s\"") != std::string::npos);
    const std::string header = command_output("h5dump -A " + path);
    CHECK(header.find("nebula-trace") != std::string::npos);
    CHECK(header.find("TRUE") != std::string::npos);
  }
  if (const std::string python = python_with_h5py(); !python.empty()) {
    const std::string script = folder.file("read.py");
    std::ofstream(script) << "import h5py, json, sys\n"
                             "f = h5py.File(sys.argv[1], 'r')\n"
                             "e = f['events']\n"
                             "names = h5py.check_enum_dtype(e.dtype['kind'])\n"
                             "assert e['kind'][0] == names['op']\n"
                             "assert (e['end_s'][:] == range(len(e))).all()\n"
                             "assert e.attrs['unit of end_s'] == 's'\n"
                             "assert f.attrs['emulated'] == True\n"
                             "assert json.loads(f.attrs['plan'])['format'] == 'nebula-plan'\n"
                             "print(len(e))\n";
    CHECK(command_output(python + " " + script + " " + path) == std::to_string(rows) + "\n");
  }
}

TEST_CASE("a full disk ends the trace, not the run") {
  const TemporaryFolder folder;
  const std::string path = folder.file("t.h5");
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    // Writing past the limit fails like writing to a full disk.
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{50'000, 50'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    int code = 1;
    try {
      TraceWriter writer(path, example_info(), {0.001, 64});
      for (const Event& event : random_events(20'000, 3)) writer.record(event);
      for (int i = 0; i < 10'000 && !writer.failure(); ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      // The run goes on.
      writer.record(Event{});
      writer.close();
    } catch (const RunError& error) {
      code = std::string(error.what()).starts_with(path + ": can't ") ? 0 : 2;
    }
    std::exit(code);  // with HDF5's own clean-up at exit
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("a trace that can't be created is an error") {
  const TemporaryFolder folder;
  CHECK_THROWS_AS(TraceWriter(folder.file("no/t.h5"), example_info()), RunError);
  CHECK_THROWS_AS(TraceWriter(folder.path(), example_info()), RunError);
}
