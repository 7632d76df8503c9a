#include "exec/layers.hpp"

#include <cmath>
#include <complex>

#include "exec/adamw.hpp"
#include "exec/batches.hpp"
#include "exec/stage_module.hpp"
#include "tests/catch.hpp"
#include "tests/core/plan_fixture.hpp"
#include "tests/exec/pipeline_fixture.hpp"
#include "tests/programs/run_program.hpp"

using namespace nebula;

namespace {

double difference(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

}  // namespace

TEST_CASE("a block sees only the past") {
  torch::manual_seed(1);
  for (const Positions positions : {Positions::rotary, Positions::learned}) {
    Model model = make_plan(1, 1, 1).model;
    model.positions = positions;
    BlockLayer block(model);
    const torch::Tensor x = torch::randn({2, 10, model.width});
    torch::Tensor changed = x.clone();
    changed.slice(1, 6) += 1;
    const torch::Tensor y = block(x);
    const torch::Tensor z = block(changed);
    CHECK(difference(y.slice(1, 0, 6), z.slice(1, 0, 6)) < 1e-6);
    CHECK(difference(y.slice(1, 6), z.slice(1, 6)) > 1e-3);
  }
}

// Rotary positions by their definition: pairs (x_i, x_(i + d/2)) as complex numbers, turned by
// position x base^(-2 i / d).
torch::Tensor turned(const torch::Tensor& x, double base) {
  const std::int64_t half = x.size(1) / 2;
  torch::Tensor y = x.clone();
  for (std::int64_t p = 0; p < x.size(0); ++p) {
    for (std::int64_t i = 0; i < half; ++i) {
      const std::complex<double> z(x[p][i].item<double>(), x[p][i + half].item<double>());
      const auto w = z * std::polar(1.0, double(p) * std::pow(base, -double(i) / double(half)));
      y[p][i] = w.real();
      y[p][i + half] = w.imag();
    }
  }
  return y;
}

TEST_CASE("a block is what its formula says") {
  // Written out again with plain operations, for one sequence.
  torch::manual_seed(2);
  const torch::NoGradGuard no_grad;
  for (const Positions positions : {Positions::rotary, Positions::learned}) {
    Model model = make_plan(1, 1, 1).model;
    model.positions = positions;
    BlockLayer block(model);
    std::map<std::string, torch::Tensor> w;
    for (const auto& item : block->named_parameters()) w[item.key()] = item.value();
    const torch::Tensor x = torch::randn({1, 5, model.width});
    const auto norm = [&](const torch::Tensor& v) {
      const torch::Tensor centred = v - v.mean(-1, true);
      return centred / torch::sqrt(centred.pow(2).mean(-1, true) + model.norm_epsilon);
    };
    const torch::Tensor qkv = norm(x).matmul(w.at("qkv.weight").t())[0];
    const int width = model.head_width();
    std::vector<torch::Tensor> heads;
    for (int h = 0; h < model.heads; ++h) {
      const auto part = [&](int which) {
        const int start = which * model.width + h * width;
        const torch::Tensor value = qkv.slice(1, start, start + width);
        const bool turns = which < 2 && positions == Positions::rotary;
        return turns ? turned(value, model.rotary_base) : value;
      };
      torch::Tensor scores = part(0).matmul(part(1).t()) / std::sqrt(double(width));
      for (int i = 0; i < 5; ++i) {
        for (int j = i + 1; j < 5; ++j) scores[i][j] = -1e30;
      }
      heads.push_back(torch::softmax(scores, -1).matmul(part(2)));
    }
    const torch::Tensor attended =
        x[0] + torch::cat(heads, -1).matmul(w.at("projection.weight").t());
    const torch::Tensor hidden = torch::gelu(norm(attended).matmul(w.at("up.weight").t()));
    const torch::Tensor expected = attended + hidden.matmul(w.at("down.weight").t());
    CHECK(difference(block(x)[0], expected) < 1e-5);
  }
}

TEST_CASE("a stage's weights depend on seed and layer only") {
  const Model model = make_plan(1, 1, 1).model;
  std::map<std::string, torch::Tensor> whole;
  const StageModule all(model, 0, 8, 5, torch::kCPU);
  for (const Parameter& p : all.parameters()) whole[p.name] = p.tensor;
  std::size_t count = 0;
  for (const auto& [first, last] : {std::pair{0, 1}, std::pair{1, 4}, std::pair{4, 8}}) {
    const StageModule stage(model, first, last, 5, torch::kCPU);
    for (const Parameter& p : stage.parameters()) {
      CHECK(torch::equal(p.tensor, whole.at(p.name)));
      ++count;
    }
  }
  CHECK(count == whole.size());
  std::int64_t elements = 0;
  for (const auto& [name, tensor] : whole) elements += tensor.numel();
  CHECK(elements == model_parameters(model));
}

TEST_CASE("the learning rate warms up, then follows a cosine to its minimum") {
  Optimizer settings;
  settings.learning_rate = 1;
  settings.min_learning_rate = 0.1;
  settings.warmup_steps = 4;
  CHECK(learning_rate(settings, 0, 20) == Approx(0.25));
  CHECK(learning_rate(settings, 3, 20) == Approx(1));
  CHECK(learning_rate(settings, 4, 20) == Approx(1));
  CHECK(learning_rate(settings, 19, 20) == Approx(0.1));
  settings.warmup_steps = 30;
  CHECK(learning_rate(settings, 19, 20) == Approx(20.0 / 30));
}

TEST_CASE("batches do not depend on how they are cut, and stay inside the file") {
  const TestFolder folder;
  const std::string path = folder.path() + "/d.tok";
  write_random_tokens(path, 18, 101, 1);
  const Plan plan = make_plan(1, 1, 1);
  const Batches batches(TokenFile(path), plan.job, plan.model);
  const Batch whole = batches.training(3, 0, 64);
  for (int i = 0; i < 64; i += 16) {
    CHECK(torch::equal(batches.training(3, i, 16).inputs, whole.inputs.slice(0, i, i + 16)));
  }
  CHECK(torch::equal(whole.inputs.slice(1, 1), whole.targets.slice(1, 0, -1)));
  CHECK(!torch::equal(batches.training(4, 0, 64).inputs, whole.inputs));
}
