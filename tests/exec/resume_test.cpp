#include <filesystem>

#include "core/error.hpp"
#include "exec/checkpoint.hpp"
#include "tests/catch.hpp"
#include "tests/core/plan_fixture.hpp"
#include "tests/exec/pipeline_fixture.hpp"
#include "tests/programs/run_program.hpp"

using namespace nebula;

namespace {

struct Setting {
  TestFolder folder;
  Plan plan = make_plan(2, 2, 3);
  WorkerOptions options;

  Setting() {
    plan.job.steps = 8;
    options.data = folder.path() + "/data.tok";
    options.heldout = folder.path() + "/heldout.tok";
    write_random_tokens(options.data, 3000, 101, 5);
    write_random_tokens(options.heldout, 500, 101, 6);
  }

  // Losses by step; asks to stop after step `stop_after`, if that is not negative, which takes
  // effect at the end of the next step at the latest.
  std::vector<double> run(const std::string& name, int stop_after, bool resume,
                          std::optional<double>* heldout = nullptr) {
    std::vector<double> losses;
    WorkerOptions own = options;
    own.resume = resume;
    const std::string place = folder.path() + "/" + name;
    std::filesystem::create_directories(place);
    const auto results =
        run_workers(plan, own, place, [&](const StepProgress& progress, std::atomic<bool>& stop) {
          losses.push_back(progress.loss);
          if (progress.step == stop_after) stop = true;
        });
    if (heldout) *heldout = results.back().heldout_loss;
    return losses;
  }
};

}  // namespace

TEST_CASE("an interrupted and resumed run equals an uninterrupted one to the bit") {
  Setting setting;
  std::optional<double> heldout;
  const std::vector<double> whole = setting.run("whole", -1, false, &heldout);
  REQUIRE(whole.size() == 8);
  REQUIRE(heldout.has_value());
  for (int stop_after = 0; stop_after < 6; ++stop_after) {
    const std::string name = "stop-" + std::to_string(stop_after);
    std::vector<double> losses = setting.run(name, stop_after, false);
    CHECK(losses.size() < 8);
    std::optional<double> again;
    const std::vector<double> rest = setting.run(name, -1, true, &again);
    losses.insert(losses.end(), rest.begin(), rest.end());
    CAPTURE(stop_after);
    CHECK(losses == whole);
    CHECK(again == heldout);
  }
}

TEST_CASE("a held-out loss does not depend on the plan") {
  Setting setting;
  std::optional<double> of_pipeline;
  std::optional<double> of_one_stage;
  setting.run("two", -1, false, &of_pipeline);
  const Job job = setting.plan.job;
  setting.plan = make_plan(1, 6, 1);
  setting.plan.job = job;
  setting.run("one", -1, false, &of_one_stage);
  REQUIRE(of_pipeline);
  REQUIRE(of_one_stage);
  CHECK(*of_pipeline == Approx(*of_one_stage).epsilon(1e-5));
}

TEST_CASE("what can't be resumed is refused") {
  Setting setting;
  // The stage that can go on waits for the one that can't.
  setting.options.connect_timeout_s = 2;
  CHECK_THROWS_AS(setting.run("empty", -1, true), InputError);
  setting.run("damaged", 2, false);
  const std::string folder = setting.folder.path() + "/damaged/checkpoints";
  const auto newest = newest_checkpoint({folder, 0, plan_hash(setting.plan)});
  REQUIRE(newest.has_value());
  const std::string file = folder + "/step-00000" + std::to_string(*newest) + "/stage-0.ckpt";
  const std::string good = read_file(file);
  SECTION("a flipped bit") {
    std::string bad = good;
    bad[bad.size() - 5] ^= 1;
    write_file(file, bad);
  }
  SECTION("a truncated file") {
    write_file(file, good.substr(0, good.size() / 2));
  }
  SECTION("not a checkpoint") {
    write_file(file, "hello");
  }
  SECTION("of another plan") {
    setting.plan.job.seed = 77;
  }
  CHECK_THROWS(setting.run("damaged", -1, true));
}
