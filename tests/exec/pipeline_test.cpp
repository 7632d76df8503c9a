#include <random>

#include "tests/catch.hpp"
#include "tests/core/plan_fixture.hpp"
#include "tests/exec/pipeline_fixture.hpp"
#include "tests/programs/run_program.hpp"

using namespace nebula;

namespace {

// Float32 sums of some hundred terms in another order differ by a few 1e-6 of their size.
constexpr double tolerance = 1e-5;

double largest(const torch::Tensor& tensor) {
  return tensor.abs().max().item<double>();
}

void check_equal(const PipelineRun& run, const PipelineRun& plain) {
  REQUIRE(run.losses.size() == plain.losses.size());
  for (std::size_t i = 0; i < run.losses.size(); ++i) {
    CAPTURE(i);
    CHECK(run.losses[i] == Approx(plain.losses[i]).epsilon(tolerance));
  }
  for (const auto& [name, gradient] : plain.gradients) {
    CAPTURE(name);
    REQUIRE(run.gradients.contains(name));
    CHECK(largest(run.gradients.at(name) - gradient) <= tolerance * largest(gradient));
  }
}

// Random cuts between the layers.
void split_unevenly(Plan& plan, std::mt19937& random) {
  std::vector<int> cuts{0, plan.model.layer_count()};
  while (int(cuts.size()) < plan.stage_count() + 1) {
    const int cut = 1 + int(random() % unsigned(plan.model.layer_count() - 1));
    if (std::find(cuts.begin(), cuts.end(), cut) == cuts.end()) cuts.push_back(cut);
  }
  std::sort(cuts.begin(), cuts.end());
  for (std::size_t s = 0; s < plan.stages.size(); ++s) {
    plan.stages[s].first_layer = cuts[s];
    plan.stages[s].last_layer = cuts[s + 1];
  }
}

}  // namespace

TEST_CASE("a pipeline trains like a plain loop") {
  const TestFolder folder;
  const std::string data = folder.path() + "/data.tok";
  write_random_tokens(data, 3000, 101, 1);
  std::mt19937 random(11);
  const PipelineRun plain = run_plain_loop(make_plan(1, 1, 6), data, 20);
  CHECK(plain.losses.back() < plain.losses.front());
  for (int stages = 1; stages <= 4; ++stages) {
    // 6 sequences a step; two micro-batches are fewer than three or four stages.
    for (const int micro_batches : {1, 2, 6}) {
      Plan plan = make_plan(stages, 6 / micro_batches, micro_batches);
      split_unevenly(plan, random);
      for (const int depth : {-1, 0, 2}) {
        plan.schedule = depth < 0 ? gpipe() : one_f_one_b(plan.shape(), depth);
        CAPTURE(stages, micro_batches, depth, one_line(plan));
        check_equal(run_pipeline(plan, folder.path(), data, 20), plain);
      }
    }
  }
}

TEST_CASE("so do other kinds of decoder") {
  const TestFolder folder;
  const std::string data = folder.path() + "/data.tok";
  write_random_tokens(data, 3000, 101, 2);
  const auto check_variant = [&](Plan plan) {
    Plan single = make_plan(1, 1, 6);
    single.model = plan.model;
    single.job = plan.job;
    check_equal(run_pipeline(plan, folder.path(), data, 20), run_plain_loop(single, data, 20));
  };
  Plan plan = make_plan(3, 2, 3);
  SECTION("tied embeddings, learned positions, biases") {
    plan.model.tied_embeddings = true;
    plan.model.positions = Positions::learned;
    plan.model.biases = true;
    for (const int stages : {2, 3}) {
      Plan tied = make_plan(stages, 2, 3);
      tied.model = plan.model;
      check_variant(tied);
    }
  }
  SECTION("grouped queries, gated feed-forward, RMS norm") {
    plan.model.kv_heads = 2;
    plan.model.feedforward = Feedforward::swiglu;
    plan.model.norm = Norm::rms_norm;
    check_variant(plan);
  }
  SECTION("targets that do not count") {
    plan.job.ignored_token = 3;
    check_variant(plan);
  }
  SECTION("a clip that bites at every step") {
    plan.job.optimizer.clip_norm = 0.05;
    check_variant(plan);
  }
}

TEST_CASE("both ends of a tied model keep the same table to the bit, also under a lossy codec") {
  const TestFolder folder;
  const std::string data = folder.path() + "/data.tok";
  write_random_tokens(data, 3000, 101, 3);
  Plan plan = make_plan(2, 2, 2);
  plan.model.tied_embeddings = true;
  for (const char* codec : {"float32", "int8"}) {
    plan.tied.name = codec;
    const PipelineRun run = run_pipeline(plan, folder.path(), data, 5);
    CHECK(torch::equal(run.weights.at("layer.0.tokens"), run.weights.at("layer.7.weight")));
  }
}

TEST_CASE("two runs with one seed have identical losses, under every codec") {
  const TestFolder folder;
  const std::string data = folder.path() + "/data.tok";
  write_random_tokens(data, 3000, 101, 4);
  Plan plan = make_plan(2, 2, 3);
  const PipelineRun exact = run_pipeline(plan, folder.path(), data, 10);
  for (const char* codec : {"float32", "bf16", "int8"}) {
    plan.boundaries[0].forward.name = codec;
    plan.boundaries[0].backward.name = codec;
    const PipelineRun run = run_pipeline(plan, folder.path(), data, 10);
    CHECK(run.losses == run_pipeline(plan, folder.path(), data, 10).losses);
    // int8 moves a loss of 4.6 by less than a hundredth here; a broken codec moves it by far more.
    for (std::size_t i = 0; i < 10; ++i) {
      CHECK(run.losses[i] == Approx(exact.losses[i]).margin(0.02));
    }
  }
  Plan other = plan;
  other.job.seed = 99;
  CHECK(run_pipeline(other, folder.path(), data, 2).losses != exact.losses);
}
