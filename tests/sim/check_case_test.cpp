#include "sim/check_case.hpp"

#include <limits>

#include "core/error.hpp"
#include "tests/catch.hpp"
#include "tests/sim/case_fixture.hpp"

using namespace nebula;
using namespace nebula::test;

namespace {

SimulationCase good_case() {
  SimulationCase work;
  work.costs = plain_costs(3, 2, 1, 2, 0.1, 0.2);
  work.lists = make_schedule(gpipe(), work.costs.shape);
  return work;
}

// What the error of a case changed by `spoil` says.
template <typename Spoil>
std::string complaint(Spoil spoil) {
  SimulationCase work = good_case();
  spoil(work);
  try {
    simulate(work.costs, work.lists, work.options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no complaint";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a case in order passes") {
  CHECK_NOTHROW(check_case(good_case()));
}

TEST_CASE("a line without a rate is named") {
  for (const double rate : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    const auto text = complaint([&](SimulationCase& work) {
      work.costs.lines[2] = {"north->south", rate};
    });
    CHECK(contains(text, "line 'north->south'"));
    CHECK(contains(text, "forward channel 1"));
  }
  // Nothing crosses it, so its rate does not matter.
  SimulationCase unused = good_case();
  unused.costs.lines.push_back({"unused", 0});
  CHECK_NOTHROW(simulate(unused.costs, unused.lists));
}

TEST_CASE("impossible amounts are named") {
  const double infinite = std::numeric_limits<double>::infinity();
  CHECK(contains(complaint([&](SimulationCase& w) { w.costs.stages[1].backward_s = -1; }),
                 "backward_s of stage 1"));
  CHECK(contains(complaint([&](SimulationCase& w) { w.costs.stages[0].forward_s = infinite; }),
                 "forward_s of stage 0"));
  CHECK(contains(complaint([&](SimulationCase& w) { w.costs.backward[1].latency_s = -1; }),
                 "latency_s of backward channel 1"));
  CHECK(contains(complaint([&](SimulationCase& w) { w.costs.forward[0].bytes = infinite; }),
                 "bytes of forward channel 0"));
  CHECK(contains(complaint([&](SimulationCase& w) { w.costs.forward[0].connections = 0; }),
                 "no connection"));
  CHECK(contains(complaint([&](SimulationCase& w) { w.costs.forward[0].line = 9; }), "line 9"));
  CHECK(contains(complaint([&](SimulationCase& w) {
                   w.costs.norm_forward[0] = w.costs.forward[0];
                   w.costs.norm_forward[0].connection_bytes_per_s = 5;
                 }),
                 "line 'there' has connections of unlike"));
  CHECK(contains(complaint([&](SimulationCase& w) { w.options.steps = 0; }), "one step"));
}

TEST_CASE("sizes must fit the shape") {
  CHECK(contains(complaint([](SimulationCase& w) { w.lists.pop_back(); }), "op lists"));
  CHECK(contains(complaint([](SimulationCase& w) { w.costs.stages.pop_back(); }), "stages"));
  CHECK(contains(complaint([](SimulationCase& w) { w.costs.backward.pop_back(); }),
                 "backward channels"));
  CHECK(contains(complaint([](SimulationCase& w) { w.lists[0][0].micro_batch = 7; }), "F7"));
}
