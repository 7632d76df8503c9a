#include <filesystem>

#include "core/fields.hpp"
#include "core/node.hpp"
#include "tests/catch.hpp"
#include "tests/programs/run_program.hpp"

// The loop through the programs, as a person runs it, with a model so small that it takes seconds.

using namespace nebula;

namespace {

const std::string bin = NEBULA_BIN_DIR "/";
const std::string examples = NEBULA_SOURCE_DIR "/examples/";

void must_run(const std::string& command) {
  const ProgramResult result = run_shell(bin + command);
  CAPTURE(command, result.out, result.err);
  REQUIRE(result.exit_code == 0);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("describe, profile, plan, train, trace, calibrate, compare, plan again") {
  const TestFolder folder;
  const std::string at = folder.path() + "/";
  const std::string cluster = folder.file(
      "c.toml",
      replaced(read_file(examples + "two-clouds.cluster.toml"), "100 Mbit/s", "20 Mbit/s"));
  const std::string model = folder.file("m.toml",
                                        "format = \"nebula-model\"\nversion = 1\nname = \"tiny\"\n"
                                        "blocks = 4\nwidth = 64\nheads = 4\nvocabulary = 512\n"
                                        "max_positions = 64\n");
  const std::string job = folder.file("j.toml",
                                      "format = \"nebula-job\"\nversion = 1\nname = \"tiny\"\n"
                                      "global_batch = 8\nsequence_length = 32\nsteps = 6\n"
                                      "heldout_sequences = 6\n"
                                      "activation_codecs = [\"float32\", \"int8\"]\n"
                                      "gradient_codecs = [\"float32\", \"bf16\"]\n");
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += "Some words, of which number " + std::to_string(i * i) + "\n%\n";
  const std::string described = " --cluster " + cluster + " --model " + model + " --job " + job;

  must_run("nebula-exec tokenize --text " + folder.file("text", text) + " --tokenizer " + at +
           "t.model --pieces 400 --out " + at + "train.tok --heldout " + at +
           "heldout.tok --heldout-share 0.2");
  must_run("nebula-exec profile --device cpu-core --repetitions 2 --out " + at + "costs.json" +
           described);
  must_run("nebula-plan --stages 2 --costs " + at + "costs.json --out " + at + "plan.json" +
           described);
  must_run("nebula-exec launch --emulate-wan --plan " + at + "plan.json --data " + at +
           "train.tok --heldout " + at + "heldout.tok --out " + at + "run");
  must_run("nebula-sim run --plan " + at + "plan.json --costs " + at + "costs.json --timeline " +
           at + "timeline.json");
  must_run("nebula-sim calibrate --traces " + at + "run/traces --costs " + at +
           "costs.json --out " + at + "calibration.json");
  must_run("nebula-sim compare --plan " + at + "plan.json --traces " + at + "run/traces --costs " +
           at + "calibration.json");
  must_run("nebula-plan --calibration " + at + "calibration.json --out " + at + "again.json" +
           described);

  const std::string result_file = at + "run/result.json";
  const Node node = read_node_file(result_file);
  Fields result(node, result_file);
  CHECK(result.count("steps_done") == 6);
  CHECK(result.numbers("losses").size() == 6);
  // Random ids of 512 kinds cost ln 512 = 6.2; nothing else is random here.
  CHECK(result.number("first_loss") == Approx(6.24).margin(0.3));
  CHECK(result.number("heldout_loss") < 6.5);
  const Node timeline = read_node_file(at + "timeline.json");
  CHECK(std::holds_alternative<NodeTable>(timeline.value));
  CHECK(std::filesystem::exists(at + "run/traces/stage-0.h5"));
  CHECK(std::filesystem::exists(at + "run/checkpoints/step-000006/stage-1.ckpt"));

  // Programs that print JSON print one object and nothing else.
  for (const std::string& command :
       {"nebula-sim run --json --plan " + at + "plan.json",
        "nebula-sim compare --json --plan " + at + "plan.json --traces " + at + "run/traces",
        "nebula-plan --json --out /dev/null --costs " + at + "costs.json" + described}) {
    const ProgramResult json = run_shell(bin + command);
    CAPTURE(command, json.err);
    CHECK(json.exit_code == 0);
    CHECK(std::holds_alternative<NodeTable>(parse_json(json.out, "stdout").value));
  }
}

TEST_CASE("the examples work as they are") {
  const TestFolder folder;
  const std::string plan = folder.path() + "/plan.json";
  must_run("nebula-plan --cluster " + examples + "two-clouds.cluster.toml --model " + examples +
           "small.model.toml --job " + examples + "demo.job.toml --out " + plan);
  must_run("nebula-sim run --plan " + plan);
  must_run("nebula-plan --cluster " + examples + "two-regions.cluster.toml --model " + examples +
           "gpt2.config.json --job " + examples + "gpt2.job.toml --out " + plan);
  must_run("nebula-sim run --plan " + plan + " --cluster " + examples + "two-regions.cluster.toml");
}
