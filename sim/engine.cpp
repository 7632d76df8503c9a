#include "sim/engine.hpp"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <string>
#include <vector>

#include <malloc.h>

#include "core/error.hpp"
#include "core/run_stage.hpp"
#include "sim/check_case.hpp"
#include "sim/engine_units.hpp"
#include "sim/sim_world.hpp"
#include "sim/simgrid_compat.hpp"
#include "sim/wire.hpp"

namespace nebula {
namespace {

namespace s4u = simgrid::s4u;

static_assert(double(Engine::most_cases) == EngineUnits::first_second);

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// The sanitizers follow threads, not stacks that are swapped by hand.
constexpr const char* contexts = "contexts/factory:thread";
constexpr const char* stacks = "contexts/stack-size:1024";
#else
constexpr const char* contexts = "contexts/factory:raw";
constexpr const char* stacks = "contexts/stack-size:256";
#endif

// Nothing of SimGrid's own idea of a network is left: transfers share a line's rate and no more.
// Connection limits and latencies come from the costs, per channel. Precision: actions end when
// they end, not when they are nearly over.
std::vector<std::string> engine_arguments() {
  return {"nebula",
          "--log=root.app:file:/dev/null",
          "--cfg=network/model:CM02",
          "--cfg=network/latency-factor:1",
          "--cfg=network/bandwidth-factor:1",
          "--cfg=network/weight-S:0",
          "--cfg=network/crosstraffic:0",
          "--cfg=network/TCP-gamma:0",
          std::string("--cfg=") + simgrid_compat::timing_precision + ":1e-15",
          std::string("--cfg=") + simgrid_compat::amount_precision + ":1e-12",
          std::string("--cfg=") + contexts,
          std::string("--cfg=") + stacks};
}

std::unique_ptr<s4u::Engine> make_engine() {
  // Actors come and go with every case: keep their stacks instead of asking the kernel each time.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  std::vector<std::string> arguments = engine_arguments();
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  int count = int(arguments.size());
  auto engine = std::make_unique<s4u::Engine>(&count, pointers.data());
  // The engine's own handler would run the exit handlers of the process that forked this one.
  std::signal(SIGINT, SIG_DFL);
  return engine;
}

double seconds_of(const ChannelCosts& channel, const std::vector<Line>& lines) {
  double seconds = channel.encode_s + channel.decode_s + channel.latency_s;
  if (channel.line < 0 || channel.bytes <= 0) return seconds;
  double rate = lines[std::size_t(channel.line)].rate_bytes_per_s;
  if (channel.connection_bytes_per_s > 0) {
    rate = std::min(rate, channel.connections * channel.connection_bytes_per_s);
  }
  return seconds + channel.bytes / rate;
}

// Everything one after the other, without any overlap: no simulation takes longer, since at any
// time something is under way, and a shared line carries at least as much as one message alone.
double serial_seconds(const SimulationCase& work) {
  const Shape& shape = work.costs.shape;
  double seconds = 0;
  for (int stage = 0; stage < shape.stages; ++stage) {
    seconds += work.costs.stages[std::size_t(stage)].prepare_s;
    for (const Op& op : work.lists[std::size_t(stage)]) {
      seconds += work.costs.op_seconds(stage, op.kind);
      for (const Message& message : emits(shape, stage, op)) {
        seconds += seconds_of(work.costs.channel(message), work.costs.lines);
      }
    }
  }
  return seconds * work.options.steps;
}

double largest_message(const SimulationCase& work) {
  const Shape& shape = work.costs.shape;
  double bytes = 0;
  for (int stage = 0; stage < shape.stages; ++stage) {
    for (const Op& op : work.lists[std::size_t(stage)]) {
      for (const Message& message : emits(shape, stage, op)) {
        bytes = std::max(bytes, work.costs.channel(message).bytes);
      }
    }
  }
  return bytes;
}

EngineUnits case_units(const SimulationCase& work, std::size_t index) {
  EngineUnits units;
  units.origin += double(index);
  int exponent = 0;
  // Of fraction x 2^exponent, with a fraction of less than one.
  std::frexp(serial_seconds(work), &exponent);
  units.seconds = std::ldexp(1.0, -exponent - 1);
  std::frexp(largest_message(work), &exponent);
  // Doubles hold whole numbers up to 2^53.
  units.bytes = std::ldexp(1.0, 52 - exponent);
  return units;
}

// Keeps what the caller wants, and the times that step_s is made of.
class Recorder final : public EventSink {
 public:
  Recorder(const SimulationCase& work)
      : keep_(work.options.want_events), ends_(std::size_t(work.options.steps), 0) {
    const auto& ops = work.lists.front();
    if (ops.empty()) return;
    last_ = ops.back();
    for (const Op& op : ops) {
      if (op.kind == OpKind::update) last_ = op;
    }
  }

  void record(const Event& event) override {
    end_ = std::max(end_, event.end_s);
    if (event.stage == 0 && event.kind == EventKind::op && event.op == last_) {
      ends_[std::size_t(event.step)] = event.end_s;
    }
    if (keep_) events_.push_back(event);
  }

  Simulation take() {
    const std::size_t steps = ends_.size();
    const double step_s = steps == 1 ? end_ : ends_[steps - 1] - ends_[steps - 2];
    return {std::move(events_), step_s};
  }

 private:
  bool keep_;
  Op last_;
  std::vector<double> ends_;
  double end_ = 0;
  std::vector<Event> events_;
};

}  // namespace

struct Engine::Platform {
  std::unique_ptr<s4u::Engine> engine;
  std::vector<s4u::Host*> stages;
  std::vector<LineEnds> lines;
  /// What a line carries, and what each of its connections carries at most.
  std::vector<s4u::Link*> rates;
  std::vector<s4u::Link*> windows;
  /// What the stages of the running case wait for.
  std::function<std::string()> waiting;
};

Engine::Engine(int stages, int lines) : platform_(std::make_unique<Platform>()) {
  Platform& platform = *platform_;
  platform.engine = make_engine();
  s4u::NetZone* zone = simgrid_compat::add_root_zone(*platform.engine, "clouds");
  for (int s = 0; s < stages; ++s) {
    platform.stages.push_back(simgrid_compat::add_host(*zone, "stage" + std::to_string(s), 1));
  }
  for (int i = 0; i < lines; ++i) {
    const std::string name = "line" + std::to_string(i);
    const LineEnds ends{simgrid_compat::add_host(*zone, name + "from", 1),
                        simgrid_compat::add_host(*zone, name + "to", 1)};
    s4u::Link* rate = simgrid_compat::add_link(*zone, name + "rate", 1);
    s4u::Link* window = simgrid_compat::add_link(*zone, name + "window", 1);
    rate->set_latency(0);
    window->set_latency(0);
    // Limits each transfer, not their sum.
    window->set_sharing_policy(s4u::Link::SharingPolicy::FATPIPE);
    simgrid_compat::add_route(*zone, ends.from, ends.to, rate, window);
    platform.lines.push_back(ends);
    platform.rates.push_back(rate);
    platform.windows.push_back(window);
  }
  zone->seal();
  s4u::Engine::on_deadlock_cb(
      [&platform] { throw RunError("the schedule stands still: " + platform.waiting()); });
}

Engine::~Engine() = default;

Simulation Engine::run(const SimulationCase& work) {
  const StepCosts& costs = work.costs;
  const EngineUnits units = case_units(work, cases_++);
  const std::vector<double> windows = line_windows(costs);
  for (std::size_t i = 0; i < costs.lines.size(); ++i) {
    const double rate = costs.lines[i].rate_bytes_per_s;
    if (rate <= 0) continue;
    const double window = windows[i] > 0 ? windows[i] : rate;
    platform_->rates[i]->set_bandwidth(units.rate(rate));
    platform_->windows[i]->set_bandwidth(units.rate(window));
  }
  Recorder recorder(work);
  s4u::Engine& engine = *platform_->engine;
  auto wire =
      std::make_unique<Wire>(engine, costs, work.options.steps, units, platform_->lines, recorder);
  platform_->waiting = [&wire] { return wire->waiting(); };
  for (int stage = 0; stage < costs.shape.stages; ++stage) {
    simgrid_compat::add_actor(engine, "stage", platform_->stages[std::size_t(stage)],
                              [&costs, &work, &units, &wire = *wire, &recorder, stage] {
                                SimWorld world(costs, stage, units, wire, recorder);
                                units.await_origin();
                                for (int step = 0; step < work.options.steps; ++step) {
                                  world.begin_step(step);
                                  run_stage(costs.shape, stage, work.lists[std::size_t(stage)],
                                            world);
                                }
                              });
  }
  try {
    engine.run();
  } catch (...) {
    // Actors still wait on its semaphores, and SimGrid aborts when those are destroyed.
    static_cast<void>(wire.release());
    throw;
  }
  return recorder.take();
}

}  // namespace nebula
