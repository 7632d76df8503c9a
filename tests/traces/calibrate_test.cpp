#include "traces/calibrate.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "core/error.hpp"
#include "core/step_costs.hpp"
#include "tests/catch.hpp"
#include "tests/traces/fixture.hpp"

using namespace nebula;

namespace {

/// Costs unlike the first principles they start from: every kind of layer, pass and device has its
/// own factor, and the fixed parts are there.
Costs strange_costs(const Plan& plan, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> factor(0.6, 3);
  Costs costs = first_principles(plan.cluster, plan.model, plan.job);
  for (auto& [kind, device] : costs.devices) {
    for (auto& [name, layer] : device.layers) {
      layer.forward_s = layer.forward_s.scaled(factor(random));
      layer.backward_s = layer.backward_s.scaled(factor(random));
      layer.update_s *= factor(random);
    }
    for (auto& [name, codec] : device.codecs) {
      codec.encode_per_element_s *= factor(random);
      codec.decode_per_element_s *= factor(random);
    }
    device.step_overhead_s = 1e-3 * factor(random);
  }
  for (const Link& link : plan.cluster.links) {
    // Both ways equally long: gradients, with norms only right behind them, do not tell it.
    const auto back = costs.links.find(link_name(link.to, link.from));
    const double latency_s =
        back == costs.links.end() ? link.latency_s * factor(random) : back->second.latency_s;
    costs.links[link_name(link.from, link.to)] = {link.rate_bytes_per_s * factor(random), latency_s,
                                                  0, "truth"};
  }
  return costs;
}

/// Everything that a simulation takes from costs agrees to within `epsilon`, and latencies to
/// within `latency_margin_s`.
void check_equal_steps(const StepCosts& found, const StepCosts& truth, double epsilon,
                       double latency_margin_s) {
  for (std::size_t s = 0; s < truth.stages.size(); ++s) {
    INFO("stage " << s);
    CHECK(found.stages[s].forward_s == Approx(truth.stages[s].forward_s).epsilon(epsilon));
    CHECK(found.stages[s].backward_s == Approx(truth.stages[s].backward_s).epsilon(epsilon));
    CHECK(found.stages[s].update_s == Approx(truth.stages[s].update_s).epsilon(3 * epsilon));
    CHECK(found.stages[s].prepare_s == Approx(truth.stages[s].prepare_s).epsilon(3 * epsilon));
  }
  for (const auto channels : {&StepCosts::forward, &StepCosts::backward})
    for (std::size_t b = 0; b < (truth.*channels).size(); ++b) {
      const ChannelCosts& is = (found.*channels)[b];
      const ChannelCosts& should = (truth.*channels)[b];
      INFO("boundary " << b);
      CHECK(is.encode_s == Approx(should.encode_s).epsilon(epsilon));
      CHECK(is.decode_s == Approx(should.decode_s).epsilon(epsilon));
      CHECK(is.latency_s == Approx(should.latency_s).margin(latency_margin_s));
      CHECK(found.lines[std::size_t(is.line)].rate_bytes_per_s ==
            Approx(truth.lines[std::size_t(should.line)].rate_bytes_per_s).epsilon(epsilon));
    }
}

std::string problem_of(const Plan& plan, const std::vector<Event>& events, const Costs& base) {
  try {
    calibrate(plan, events, base);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no InputError";
}

}  // namespace

TEST_CASE("the costs behind noiseless traces are recovered") {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Plan plan = test::make_plan({4, 6}, {"a", "b"});
    const Costs truth = strange_costs(plan, seed);
    const Costs base = first_principles(plan.cluster, plan.model, plan.job);
    const Costs found = calibrate(plan, test::run_plan(plan, truth, 6, {}), base);
    // One stage a device: a common ratio fits exactly, as codecs and lines do.
    check_equal_steps(step_costs(plan, plan.cluster, found), step_costs(plan, plan.cluster, truth),
                      1e-6, 1e-9);
    CHECK(found.source == "calibration");
    CHECK(found.devices.at("a").source == "calibration");
    CHECK(found.links.at("c0->c1").source == "calibration");
    for (const Residual& residual : found.residuals) {
      INFO(residual.what);
      CHECK(residual.predicted_s == Approx(residual.measured_s).epsilon(1e-6));
    }
  }
}

TEST_CASE("noise and stragglers move the fit by little more than a median's error") {
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    const Plan plan = test::make_plan({4, 6}, {"a", "b"});
    const Costs truth = strange_costs(plan, seed);
    const Costs base = first_principles(plan.cluster, plan.model, plan.job);
    // 3 % on everything, and one op in fifty ten times as long.
    const auto events = test::run_plan(plan, truth, 22, {0.03, 0.02, seed});
    const Costs found = calibrate(plan, events, base);
    // The median of 160 values of 3 % scatters by 1.25 x 3 % / sqrt(160) = 0.3 %; 2 % of
    // stragglers lift it by 0.025 sigma = 0.1 %: 1.5 % is over four sigma away. Updates and
    // preparations are 20 values (0.8 %) and have three times the room.
    check_equal_steps(step_costs(plan, plan.cluster, found), step_costs(plan, plan.cluster, truth),
                      0.015, 1e-5);
  }
}

TEST_CASE("kinds of layer are told apart by stages of one device") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Plan plan = test::make_plan({3, 4, 3}, {"a", "a", "a"});
    const Costs truth = strange_costs(plan, seed);
    const Costs base = first_principles(plan.cluster, plan.model, plan.job);
    const Costs found = calibrate(plan, test::run_plan(plan, truth, 22, {0.01, 0.02, seed}), base);
    // Every stage is met. The step's overhead is one for the device, so it is exact here too.
    check_equal_steps(step_costs(plan, plan.cluster, found), step_costs(plan, plan.cluster, truth),
                      0.01, 1e-5);
    // Stage 1 is blocks only, stage 2 two blocks and the head (the embedding has no FLOPs): both
    // are determined, the head through the difference, so with a few times the error.
    const auto& is = found.devices.at("a").layers;
    const auto& should = truth.devices.at("a").layers;
    CHECK(is.at("block").forward_s.at(2) ==
          Approx(should.at("block").forward_s.at(2)).epsilon(0.01));
    CHECK(is.at("head").forward_s.at(2) == Approx(should.at("head").forward_s.at(2)).epsilon(0.05));
    CHECK(is.at("head").backward_s.at(2) ==
          Approx(should.at("head").backward_s.at(2)).epsilon(0.05));
  }
}

TEST_CASE("a stage that recomputes has its forward inside its backward") {
  Plan plan = test::make_plan({4, 6}, {"a", "a"});
  plan.stages[0].recompute = true;
  const Costs truth = strange_costs(plan, 3);
  const Costs base = first_principles(plan.cluster, plan.model, plan.job);
  const Costs found = calibrate(plan, test::run_plan(plan, truth, 6, {}), base);
  check_equal_steps(step_costs(plan, plan.cluster, found), step_costs(plan, plan.cluster, truth),
                    2e-3, 1e-9);
}

TEST_CASE("a tied model's two tables and their gradients are fitted too") {
  Plan plan = test::make_plan({4, 6}, {"a", "b"});
  plan.model.tied_embeddings = true;
  plan.tied.name = "bf16";
  const Costs truth = strange_costs(plan, 4);
  const Costs base = first_principles(plan.cluster, plan.model, plan.job);
  const Costs found = calibrate(plan, test::run_plan(plan, truth, 6, {}), base);
  const StepCosts is = step_costs(plan, plan.cluster, found);
  const StepCosts should = step_costs(plan, plan.cluster, truth);
  check_equal_steps(is, should, 1e-6, 1e-9);
  CHECK(is.tied_forward.encode_s == Approx(should.tied_forward.encode_s));
  CHECK(is.tied_backward.decode_s == Approx(should.tied_backward.decode_s));
}

TEST_CASE("curves keep their shape, and fixed parts stay as far as they fit") {
  const Plan plan = test::make_plan({4, 6}, {"a", "b"});
  Costs base = first_principles(plan.cluster, plan.model, plan.job);
  auto& block = base.devices["a"].layers["block"];
  block.forward_s = {{1, 2, 4}, {2e-5, 3e-5, 5e-5}};
  base.devices["a"].op_overhead_s = 1e-6;
  base.devices["b"].op_overhead_s = 1e3;
  base.devices["a"].codecs["int8"].fixed_s = 1e-7;
  base.devices["b"].codecs["int8"].fixed_s = 1e3;
  const Costs truth = strange_costs(plan, 5);
  const Costs found = calibrate(plan, test::run_plan(plan, truth, 6, {}), base);
  const Curve& fitted = found.devices.at("a").layers.at("block").forward_s;
  CHECK(fitted.sequences == block.forward_s.sequences);
  CHECK(fitted.values[2] / fitted.values[0] == Approx(2.5));
  CHECK(found.devices.at("a").op_overhead_s == 1e-6);
  CHECK(found.devices.at("a").codecs.at("int8").fixed_s == 1e-7);
  CHECK(found.devices.at("b").op_overhead_s < 1);
  CHECK(found.devices.at("b").codecs.at("int8").fixed_s < 1);
  check_equal_steps(step_costs(plan, plan.cluster, found), step_costs(plan, plan.cluster, truth),
                    1e-6, 1e-9);
}

TEST_CASE("what the traces do not tell stays") {
  Plan plan = test::make_plan({4, 6}, {"a", "b"});
  Device spare;
  spare.kind = "spare";
  spare.peak_flops_per_s = 1e12;
  plan.cluster.devices.push_back(spare);
  Costs base = first_principles(plan.cluster, plan.model, plan.job);
  base.links["elsewhere->c0"] = {1, 2, 3, "measured by hand"};
  base.residuals = {{"stale", 1, 2}};
  const auto events = test::run_plan(plan, strange_costs(plan, 6), 6, {});
  const Costs found = calibrate(plan, events, base);
  CHECK(found.devices.at("spare") == base.devices.at("spare"));
  CHECK(found.links.at("elsewhere->c0") == base.links.at("elsewhere->c0"));
  CHECK(found.devices.at("a").codecs.at("float32") == base.devices.at("a").codecs.at("float32"));
  CHECK(found.devices.at("a").layers.at("block").saved_bytes ==
        base.devices.at("a").layers.at("block").saved_bytes);
  for (const Residual& residual : found.residuals) CHECK(residual.what != "stale");
  // Pure, and of events in any order.
  auto shuffled = events;
  std::mt19937_64 random(1);
  std::shuffle(shuffled.begin(), shuffled.end(), random);
  CHECK(calibrate(plan, events, base) == found);
  CHECK(to_json(calibrate(plan, shuffled, base)) == to_json(found));
}

TEST_CASE("links inside one cloud are left alone") {
  Plan plan = test::make_plan({4, 6}, {"a", "b"});
  plan.stages[1].cloud = "c0";
  plan.cluster.clouds[0].devices = {{"a", 1}, {"b", 1}};
  const Costs base = first_principles(plan.cluster, plan.model, plan.job);
  const Costs found = calibrate(plan, test::run_plan(plan, base, 6, {}), base);
  CHECK(found.links.empty());
}

TEST_CASE("a window that would forbid the measured rate is widened") {
  Plan plan = test::make_plan({4, 6}, {"a", "b"});
  const Costs truth = strange_costs(plan, 7);
  for (Link& link : plan.cluster.links) link.window_bytes = 1000;
  const Costs base = first_principles(plan.cluster, plan.model, plan.job);
  const Costs found = calibrate(plan, test::run_plan(plan, truth, 6, {}), base);
  const StepCosts costs = step_costs(plan, plan.cluster, found);
  for (const ChannelCosts& channel : costs.forward)
    CHECK(channel.connection_bytes_per_s * channel.connections >=
          costs.lines[std::size_t(channel.line)].rate_bytes_per_s * (1 - 1e-9));
}

TEST_CASE("too few steps and foreign costs are refused") {
  const Plan plan = test::make_plan({4, 6}, {"a", "b"});
  const Costs base = first_principles(plan.cluster, plan.model, plan.job);
  CHECK(problem_of(plan, test::run_plan(plan, base, 5, {}), base) == "no InputError");
  CHECK(problem_of(plan, test::run_plan(plan, base, 4, {}), base) ==
        "traces: stage 0 has 2 steps after the first 2, a calibration needs 3");
  CHECK(problem_of(plan, {}, base) ==
        "traces: stage 0 has 0 steps after the first 2, a calibration needs 3");
  auto only_first = test::run_plan(plan, base, 6, {});
  std::erase_if(only_first, [](const Event& event) { return event.stage == 1; });
  CHECK(problem_of(plan, only_first, base).starts_with("traces: stage 1 has 0 steps"));
  Costs foreign = base;
  foreign.model = "other";
  CHECK(problem_of(plan, test::run_plan(plan, base, 6, {}), foreign).starts_with("base costs"));
}
