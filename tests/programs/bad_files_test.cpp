#include <string>
#include <vector>

#include "core/costs.hpp"
#include "core/plan.hpp"
#include "tests/catch.hpp"
#include "tests/core/plan_fixture.hpp"
#include "tests/programs/run_program.hpp"

// Every malformed file ends a program with exit code 2 and a message that names the file and the
// line or key.

using namespace nebula;

namespace {

const std::string bin = NEBULA_BIN_DIR;
const std::string examples = NEBULA_SOURCE_DIR "/examples/";

// A good file with one thing changed.
struct BadFile {
  const char* what;
  const char* from;
  const char* to;
  /// In the message, besides the file's name.
  const char* says;
};

std::string changed(std::string text, const BadFile& bad) {
  if (*bad.from == '\0') return bad.to;
  const auto at = text.find(bad.from);
  if (at == std::string::npos) throw std::runtime_error(std::string("no such text: ") + bad.from);
  return text.replace(at, std::string(bad.from).size(), bad.to);
}

void check_all(const std::string& good, const std::string& name, const std::string& command,
               const std::vector<BadFile>& table) {
  const TestFolder folder;
  for (const BadFile& bad : table) {
    const std::string path = folder.file(name, changed(good, bad));
    std::string line = command;
    line.replace(line.find("FILE"), 4, path);
    const ProgramResult result = run_shell(line);
    CAPTURE(bad.what, result.err, result.out);
    CHECK(result.exit_code == 2);
    CHECK(result.err.find(path) != std::string::npos);
    CHECK(result.err.find(bad.says) != std::string::npos);
  }
}

std::string plan_command(const std::string& cluster, const std::string& model,
                         const std::string& job) {
  return bin + "/nebula-plan --out /dev/null --cluster " + cluster + " --model " + model +
         " --job " + job;
}

const std::string good_cluster = examples + "two-clouds.cluster.toml";
const std::string good_model = examples + "small.model.toml";
const std::string good_job = examples + "demo.job.toml";

}  // namespace

TEST_CASE("malformed cluster files") {
  check_all(
      read_file(good_cluster), "c.toml", plan_command("FILE", good_model, good_job),
      {
          {"no TOML", "[[clouds]]", "[[clouds", "c.toml:1"},
          {"no format", "format = \"nebula-cluster\"", "", "format"},
          {"another format", "nebula-cluster", "nebula-model", "format"},
          {"a newer version", "version = 1", "version = 99", "version"},
          {"a rate without unit", "\"100 Mbit/s\"", "100", "links[0].rate"},
          {"a rate with a time's unit", "\"100 Mbit/s\"", "\"100 ms\"", "links[0].rate"},
          {"a negative rate", "\"100 Mbit/s\"", "\"-100 Mbit/s\"", "links[0].rate"},
          {"a rate of zero", "\"100 Mbit/s\"", "\"0 Mbit/s\"", "links[0].rate"},
          {"no latency", "rtt = \"30 ms\"", "", "links[0].rtt"},
          {"an unknown key", "rtt =", "rrt = 1\nrtt =", "links[0].rrt: unknown key"},
          {"a link to nowhere", "[\"north\", \"south\"]", "[\"north\", \"west\"]", "west"},
          {"a link to itself", "[\"north\", \"south\"]", "[\"north\", \"north\"]", "itself"},
          {"two clouds of one name", "name = \"south\"", "name = \"north\"", "twice"},
          {"a name that is no file name", "name = \"south\"", "name = \"../x\"", "clouds[1].name"},
          {"an unknown device", "kind = \"cpu-core\"", "kind = \"cpu\"", "clouds[0].devices"},
          {"no devices", "count = 1", "count = 0", "clouds[0].devices[0].count"},
          {"text for a count", "count = 1", "count = \"1\"", "expected an integer"},
          {"a port too high", "127.0.0.1:7400", "127.0.0.1:99999", "clouds[0].address"},
          {"memory of zero", "\"4 GiB\"", "\"0 GiB\"", "devices.cpu-core.memory"},
          {"an empty file", "", "", "format"},
      });
}

TEST_CASE("malformed model files") {
  check_all(read_file(good_model), "m.toml", plan_command(good_cluster, "FILE", good_job),
            {
                {"no blocks", "blocks = 4\n", "", "blocks: is missing"},
                {"heads that do not divide", "heads = 6", "heads = 7", "heads"},
                {"a width of zero", "width = 384", "width = 0", "width"},
                {"an unknown norm", "\"layer_norm\"", "\"batch_norm\"", "layer_norm, rms_norm"},
                {"a fraction of a block", "blocks = 4", "blocks = 4.5", "blocks"},
                {"a key twice", "blocks = 4", "blocks = 4\nblocks = 5", "m.toml:"},
                {"positions too few", "max_positions = 256", "max_positions = 64", "positions"},
                {"absurdly many blocks", "blocks = 4", "blocks = 99999999999", "blocks"},
            });
  check_all(
      read_file(examples + "gpt2.config.json"), "config.json",
      plan_command(good_cluster, "FILE", good_job),
      {
          {"an unknown family", "\"gpt2\",\n  \"_name", "\"mamba\",\n  \"_name", "model_type"},
          {"no width", "\"n_embd\": 768,", "", "n_embd"},
          {"no JSON", "\"n_embd\": 768,", "\"n_embd\": ,", "config.json:5"},
          {"a key twice", "\"n_embd\": 768,", "\"n_embd\": 768, \"n_embd\": 7,", "twice"},
          {"text for a number", "\"n_layer\": 12", "\"n_layer\": \"12\"", "n_layer"},
      });
}

TEST_CASE("malformed job files") {
  check_all(read_file(good_job), "j.toml", plan_command(good_cluster, good_model, "FILE"),
            {
                {"no batch", "global_batch = 16", "", "global_batch"},
                {"an unknown codec", "\"int8\"]", "\"int7\"]", "float32, bf16, int8"},
                {"no codec", "[\"float32\", \"bf16\", \"int8\"]", "[]", "activation_codecs"},
                {"an unknown precision", "\"bf16\"\n", "\"fp16\"\n", "precision"},
                {"a negative rate", "2e-3", "-2e-3", "optimizer.learning_rate"},
                {"a rate that is no number", "2e-3", "nan", "optimizer.learning_rate"},
                {"an unknown key", "weight_decay", "weight_decai", "optimizer.weight_decai"},
            });
}

TEST_CASE("malformed plans and costs") {
  const Plan plan = make_plan(2, 2, 4);
  check_all(
      to_json(plan), "plan.json", bin + "/nebula-sim run --plan FILE",
      {
          {"a layer left out", "4,\n        8", "5,\n        8", "stages[1].layers"},
          {"a cloud of no cluster", "\"cloud\": \"c1\"", "\"cloud\": \"c9\"", "stages[1].cloud"},
          {"batches that do not multiply", "\"micro_batches\": 4", "\"micro_batches\": 5",
           "micro_batches"},
          {"depths that grow", "2,\n      1", "1,\n      2", "in_flight"},
          {"a boundary elsewhere", "\"to\": 1", "\"to\": 2", "boundaries[0]"},
          {"an unknown schedule", "\"1f1b\"", "\"2f2b\"", "schedule.kind"},
          {"an unknown codec", "\"name\": \"float32\"", "\"name\": \"int3\"", "int3"},
          {"cut in the middle", "\"stages\": [", "", "plan.json:"},
          {"a list for a table", "\"schedule\": {", "\"schedule\": [], \"x\": {", "schedule"},
          {"a newer version", "\"version\": 1", "\"version\": 2", "version"},
      });
  const TestFolder folder;
  const std::string plan_file = folder.file("plan.json", to_json(plan));
  const Costs costs = first_principles(plan.cluster, plan.model, plan.job);
  check_all(to_json(costs), "costs.json",
            bin + "/nebula-sim run --plan " + plan_file + " --costs FILE",
            {
                {"of another model", "\"model\": \"tiny\"", "\"model\": \"huge\"", "model"},
                {"a kind of layer left out", "\"head\": {", "\"tail\": {", "head"},
                {"of another device", "\"core\": {", "\"gpu\": {", "core"},
                {"a negative time", "\"update_s\": ", "\"update_s\": -", "update"},
                {"an unknown source", "\"first principles\",\n  \"model\"",
                 "\"guess\",\n  \"model\"", "source"},
            });
}

TEST_CASE("files that are not there, options that are not") {
  for (const auto& [command, says] : std::vector<std::pair<std::string, std::string>>{
           {"/nebula-sim run --plan /nowhere/plan.json", "/nowhere/plan.json"},
           {"/nebula-sim run --plan " + examples, "folder"},
           {"/nebula-sim run", "--plan"},
           {"/nebula-sim fly", "fly"},
           {"/nebula-sim run --plam x", "plam"},
           {"/nebula-plan --cluster x.yaml --model m --job j", "x.yaml"},
           {"/nebula-exec train --plan x.json", "--cloud"},
           {"/nebula-exec", "Usage"},
       }) {
    const ProgramResult result = run_shell(bin + command);
    CAPTURE(command, result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.err.find(says) != std::string::npos);
  }
}
