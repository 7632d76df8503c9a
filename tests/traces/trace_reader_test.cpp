#include "traces/trace_reader.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>

#include "core/error.hpp"
#include "tests/catch.hpp"
#include "tests/traces/fixture.hpp"
#include "traces/h5.hpp"
#include "traces/trace_writer.hpp"

using namespace nebula;
using nebula::test::TemporaryFolder;

namespace {

std::string problem_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no InputError";
}

void check_problem(const std::function<void()>& work, const std::string& part) {
  const std::string problem = problem_of(work);
  INFO(problem);
  CHECK(problem.find(part) != std::string::npos);
}

void write_trace(const std::string& path, const TraceInfo& info,
                 const std::vector<Event>& events = {},
                 const std::vector<ClockOffset>& clocks = {}) {
  TraceWriter writer(path, info);
  for (const Event& event : events) writer.record(event);
  for (const ClockOffset& clock : clocks) writer.record_clock(clock);
  writer.close();
}

TraceInfo stage_info(int stage, int stages, const std::string& run = "1") {
  TraceInfo info;
  info.plan = "{}";
  info.plan_hash = 77;
  info.run = run;
  info.stage = stage;
  info.stages = stages;
  return info;
}

/// Copies a good trace and changes something in the copy.
std::string damaged(const TemporaryFolder& folder, const std::function<void(hid_t)>& change) {
  const std::string path = folder.file("damaged.h5");
  write_trace(path, stage_info(0, 1), std::vector<Event>(10));
  const H5Session session;
  H5Id file(H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT), H5Fclose);
  change(file.get());
  return path;
}

void rewrite_attribute(hid_t file, const char* name, std::int64_t value) {
  H5Adelete(file, name);
  const H5Id space(H5Screate(H5S_SCALAR), H5Sclose);
  const H5Id attribute(
      H5Acreate2(file, name, H5T_NATIVE_INT64, space.get(), H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  H5Awrite(attribute.get(), H5T_NATIVE_INT64, &value);
}

Event at(int stage, double start_s, double end_s) {
  Event event;
  event.stage = stage;
  event.start_s = start_s;
  event.end_s = end_s;
  return event;
}

}  // namespace

TEST_CASE("files that are no readable trace are refused by name") {
  const TemporaryFolder folder;
  SECTION("missing") {
    const std::string path = folder.file("none.h5");
    CHECK(problem_of([&] { read_trace(path); }) == path + ": does not exist");
  }
  SECTION("not HDF5") {
    const std::string path = folder.file("text.h5");
    std::ofstream(path) << "step,loss\n";
    CHECK(problem_of([&] { read_trace(path); }).starts_with(path + ": can't open it: "));
  }
  SECTION("empty") {
    const std::string path = folder.file("empty.h5");
    std::ofstream(path).flush();
    CHECK(problem_of([&] { read_trace(path); }).starts_with(path + ": can't open it: "));
  }
  SECTION("a folder") {
    CHECK(problem_of([&] { read_trace(folder.path()); }).starts_with(folder.path()));
  }
  SECTION("truncated at any length") {
    const std::string path = folder.file("cut.h5");
    write_trace(path, stage_info(0, 1), std::vector<Event>(100));
    const auto size = std::filesystem::file_size(path);
    for (std::uintmax_t cut = size - 1; cut > 0; cut = cut * 3 / 4) {
      std::filesystem::resize_file(path, cut);
      CHECK(problem_of([&] { read_trace(path); }).starts_with(path + ": "));
    }
  }
  SECTION("HDF5 of somebody else") {
    const std::string path = damaged(folder, [](hid_t file) { H5Adelete(file, "format"); });
    check_problem([&] { read_trace(path); }, path + ": is HDF5 but no trace");
  }
  SECTION("a later version") {
    const std::string path =
        damaged(folder, [](hid_t file) { rewrite_attribute(file, "version", 2); });
    CHECK(problem_of([&] { read_trace(path); }) ==
          path + ": has version 2, this program reads versions 1 to 1");
  }
  SECTION("an impossible stage") {
    const std::string path =
        damaged(folder, [](hid_t file) { rewrite_attribute(file, "stage", 1); });
    CHECK(problem_of([&] { read_trace(path); }) == path + ": says stage 1 of 1");
  }
  SECTION("a table is gone") {
    const std::string path =
        damaged(folder, [](hid_t file) { H5Ldelete(file, "events", H5P_DEFAULT); });
    check_problem([&] { read_trace(path); }, path + ": can't open table events");
  }
  SECTION("a table of something else") {
    const std::string path = damaged(folder, [](hid_t file) {
      H5Ldelete(file, "events", H5P_DEFAULT);
      const H5Id space(H5Screate(H5S_SCALAR), H5Sclose);
      const H5Id data(H5Dcreate2(file, "events", H5T_NATIVE_INT, space.get(), H5P_DEFAULT,
                                 H5P_DEFAULT, H5P_DEFAULT),
                      H5Dclose);
    });
    check_problem([&] { read_trace(path); }, path + ": table events is no list of rows");
  }
  SECTION("an attribute of another type") {
    const std::string path =
        damaged(folder, [](hid_t file) { rewrite_attribute(file, "cloud", 3); });
    check_problem([&] { read_trace(path); }, path + ": can't read attribute cloud");
  }
  SECTION("events of a stage that the plan does not have") {
    const std::string path = folder.file("stage.h5");
    write_trace(path, stage_info(0, 1), {at(1, 0, 1)});
    check_problem([&] { read_trace(path); }, path + ": table events");
    write_trace(path, stage_info(0, 1), {at(0, 0, std::nan(""))});
    check_problem([&] { read_trace(path); }, path + ": table events");
  }
}

TEST_CASE("damaged rows are refused or read as what they now say, never worse") {
  // Damage to HDF5's own structure is HDF5's to notice; the rows are ours.
  const TemporaryFolder folder;
  const std::string path = folder.file("flipped.h5");
  const double mark = 123456.789;
  write_trace(path, stage_info(0, 1), std::vector<Event>(50, at(0, mark, mark + 1)));
  std::ifstream in(path, std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(in), {}};
  const std::size_t rows =
      good.find(std::string(reinterpret_cast<const char*>(&mark), sizeof mark));
  REQUIRE(rows != std::string::npos);
  std::mt19937_64 random(11);
  int refused = 0;
  for (int round = 0; round < 300; ++round) {
    std::string bad = good;
    for (int flips = 4; flips > 0; --flips) bad[rows + random() % 2000] ^= char(1 << random() % 8);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bad;
    try {
      read_trace(path);
    } catch (const InputError& error) {
      ++refused;
      CHECK(std::string(error.what()).starts_with(path + ": table events"));
    }
  }
  CHECK(refused > 30);
}

TEST_CASE("the traces of a run are a complete set of one plan") {
  const TemporaryFolder folder;
  const auto write = [&](const std::string& name, const TraceInfo& info) {
    write_trace(folder.file(name), info);
    return folder.file(name);
  };
  const std::string b = write("b.h5", stage_info(0, 2));
  const std::string a = write("a.h5", stage_info(1, 2));
  std::ofstream(folder.file("notes.txt")) << "not read";

  SECTION("a folder or the files, in any order, come in order of stages") {
    for (const auto& arguments :
         {std::vector{folder.path()}, std::vector{a, b}, std::vector{b, a}}) {
      const auto traces = read_traces(arguments);
      REQUIRE(traces.size() == 2);
      CHECK(traces[0].path == b);
      CHECK(traces[1].path == a);
    }
  }
  SECTION("one is missing") {
    CHECK(problem_of([&] { read_traces({a}); }) ==
          a + ": the trace of stage 0 of 2 is missing beside it");
  }
  SECTION("one is there twice") {
    const std::string c = write("c.h5", stage_info(1, 2));
    check_problem([&] { read_traces({folder.path()}); }, c + ": is of stage 1 like " + a);
  }
  SECTION("another plan") {
    TraceInfo other = stage_info(1, 2);
    other.plan_hash = 78;
    write("a.h5", other);
    CHECK(problem_of([&] { read_traces({b, a}); }) == a + ": is of another plan than " + b);
  }
  SECTION("another run") {
    write("a.h5", stage_info(1, 2, "2"));
    CHECK(problem_of([&] { read_traces({b, a}); }) == a + ": is of run 2, but " + b + " of run 1");
  }
  SECTION("an empty folder, and nothing") {
    const TemporaryFolder empty;
    CHECK(problem_of([&] { read_traces({empty.path()}); }) ==
          empty.path() + ": has no traces (*.h5)");
    check_problem([&] { read_traces({}); }, "names no file");
  }
}

TEST_CASE("the plan comes from the traces or from a file that holds the same one") {
  const TemporaryFolder folder;
  const Plan plan = test::make_plan({4, 6}, {"a", "b"});
  std::vector<Trace> traces(1);
  traces[0].path = "stage-0.h5";
  traces[0].info = describe(plan, 0);
  CHECK(plan_of(traces) == plan);
  // Other addresses and predictions are the same plan.
  Plan moved = plan;
  moved.cluster.clouds[0].port = 9;
  moved.predicted.step_s = 5;
  write_plan_file(folder.file("moved.json"), moved);
  CHECK(plan_of(traces, folder.file("moved.json")) == moved);
  Plan other = plan;
  other.boundaries[0].forward.name = "bf16";
  write_plan_file(folder.file("other.json"), other);
  CHECK(problem_of([&] { plan_of(traces, folder.file("other.json")); }) ==
        folder.file("other.json") + ": is not the plan that stage-0.h5 is a trace of");
  traces[0].info.plan = "{\"format\": 3}";
  check_problem([&] { plan_of(traces); }, "stage-0.h5: plan");
}

TEST_CASE("processes that start at different times come on one axis") {
  const std::int64_t now_ns = 1'700'000'000'000'000'000;
  std::vector<Trace> traces(2);
  traces[0].info = stage_info(0, 2);
  traces[0].info.origin_unix_ns = now_ns + 1'500'000'000;
  traces[0].events = {at(0, 0, 0.25)};
  traces[1].info = stage_info(1, 2);
  traces[1].info.origin_unix_ns = now_ns;
  traces[1].events = {at(1, 1, 2)};
  const auto events = merge(traces);
  REQUIRE(events.size() == 2);
  // By end; the earliest origin is 0.
  CHECK(events[0] == at(0, 1.5, 1.75));
  CHECK(events[1] == at(1, 1, 2));
}

TEST_CASE("clock offsets are undone along the chain of least error") {
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> seconds(-100, 100);
  for (int round = 0; round < 200; ++round) {
    const std::size_t n = 1 + random() % 6;
    std::vector<double> clock_s(n);
    for (double& offset : clock_s) offset = seconds(random);
    std::vector<Trace> traces(n);
    for (std::size_t i = 0; i < n; ++i) {
      traces[i].info = stage_info(int(i), int(n));
      // All start at the same true time, and see an event 3 s later.
      traces[i].info.origin_unix_ns =
          1'700'000'000'000'000'000 + std::int64_t(std::llround(clock_s[i] * 1e9));
      traces[i].events = {at(int(i), 3, 4)};
      if (i == 0) continue;
      // Neighbours measure well, in either direction; over the chain's ends somebody measured
      // badly; and an older measurement was worse.
      const double difference = clock_s[i] - clock_s[i - 1];
      auto& below = traces[i - 1].clocks;
      if (random() % 2)
        below.insert(below.end(), {{int(i), difference + 1, 2}, {int(i), difference, 1e-3}});
      else
        traces[i].clocks = {{int(i) - 1, -difference, 1e-3}};
      if (i > 1) traces[i].clocks.push_back({0, 55, 60});
    }
    for (const Event& event : merge(traces)) {
      CHECK(event.start_s == Approx(3).margin(1e-6));
      CHECK(event.end_s == Approx(4).margin(1e-6));
    }
  }
}
