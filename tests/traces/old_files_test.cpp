// Trace files of every version that was ever released, as they were written then. A reader of any
// later version must read the same from them.
//
// trace-v1.h5 was written by
//   nebula_traces_tests "[write-old-file]"
// which puts it into the current folder. Once committed it is never written again.

#include "tests/catch.hpp"
#include "tests/traces/fixture.hpp"
#include "traces/trace_reader.hpp"
#include "traces/trace_writer.hpp"

using namespace nebula;

namespace {

TraceInfo info_v1() {
  TraceInfo info = describe(test::make_plan({4, 6}, {"a", "b"}), 1);
  info.run = "5f3a";
  info.host = "example";
  info.program = "nebula-exec 0.1.0";
  info.threads = 1;
  info.emulated = true;
  info.origin_unix_ns = 1'700'000'000'123'456'789;
  return info;
}

/// Each kind of event, op and message.
std::vector<Event> events_v1() {
  std::vector<Event> events;
  double now = 0.5;
  const auto add = [&](Event event) {
    event.stage = 1;
    event.step = int(events.size()) / 8;
    event.start_s = now;
    event.end_s = now += 0.125;
    events.push_back(event);
  };
  for (int i = 0; i < 7; ++i) {
    Event event;
    event.op = {OpKind(i), i, i % 2};
    event.micro_batch = i;
    add(event);
  }
  for (const EventKind kind :
       {EventKind::wait, EventKind::encode, EventKind::decode, EventKind::transfer})
    for (int i = 0; i < 5; ++i) {
      Event event;
      event.kind = kind;
      event.message = MessageKind(i);
      event.peer = 0;
      event.micro_batch = i;
      if (kind == EventKind::transfer) event.bytes = 1000 + i;
      add(event);
    }
  for (const EventKind kind : {EventKind::prepare, EventKind::save, EventKind::evaluate}) {
    Event event;
    event.kind = kind;
    add(event);
  }
  return events;
}

}  // namespace

TEST_CASE("write the trace of version 1", "[.][write-old-file]") {
  TraceWriter writer("trace-v1.h5", info_v1(), {2, 40, 1 << 10});
  for (const Event& event : events_v1()) writer.record(event);
  writer.record_metrics({1, 4.25, 0.5, 1e-3, 1024, 0.75, 3e8});
  writer.record_clock({0, -0.002, 0.0005});
  writer.close();
}

TEST_CASE("a trace of version 1 reads as it was written") {
  const Trace trace = read_trace(NEBULA_SOURCE_DIR "/tests/old_files/trace-v1.h5");
  CHECK(trace.complete);
  // The plan inside is of its time too; it must still be readable.
  const Plan plan = parse_plan(trace.info.plan, "trace-v1.h5");
  CHECK(plan.stage_count() == 2);
  CHECK(plan.boundaries[0].forward.name == "int8");
  CHECK(trace.info.plan_hash == 5392641795270140896U);
  TraceInfo expected = info_v1();
  expected.plan = trace.info.plan;
  expected.plan_hash = trace.info.plan_hash;
  CHECK(trace.info == expected);
  CHECK(trace.events == events_v1());
  REQUIRE(trace.metrics.size() == 1);
  CHECK(trace.metrics[0].step == 1);
  CHECK(trace.metrics[0].loss == 4.25);
  CHECK(trace.metrics[0].grad_norm == 0.5);
  CHECK(trace.metrics[0].learning_rate == 1e-3);
  CHECK(trace.metrics[0].tokens == 1024);
  CHECK(trace.metrics[0].step_s == 0.75);
  CHECK(trace.metrics[0].peak_bytes == 3e8);
  CHECK(trace.clocks == std::vector<ClockOffset>{{0, -0.002, 0.0005}});
}
