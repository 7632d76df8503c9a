#include "exec/commands.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>

#include <boost/program_options/value_semantic.hpp>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.hpp"
#include "core/fields.hpp"
#include "core/node.hpp"
#include "core/plan.hpp"
#include "exec/certificates.hpp"
#include "exec/cpu_share.hpp"
#include "exec/profile.hpp"
#include "exec/supervise.hpp"
#include "exec/tokenize_command.hpp"
#include "exec/torch_compat.hpp"

namespace nebula {
namespace {

namespace po = boost::program_options;
namespace fs = std::filesystem;

struct KeysOptions {
  std::string out;
  std::vector<std::string> clouds;
  std::string cluster;
};

int run_keys(const KeysOptions& options, const CommonOptions& common) {
  std::vector<std::string> clouds = options.clouds;
  if (!options.cluster.empty()) {
    for (const Cloud& cloud : read_cluster_file(options.cluster).clouds) {
      clouds.push_back(cloud.name);
    }
  }
  if (clouds.empty()) throw InputError("--clouds", "name the clouds, or give their --cluster file");
  make_keys(options.out, clouds);
  if (!common.quiet && !common.json) {
    std::cout << "Keys of " << clouds.size() << " clouds in " << options.out
              << ". Each cloud needs authority.pem and its own NAME.pem and NAME.key; "
                 "authority.key stays here.\n";
  }
  if (common.json) {
    std::cout << to_json(TableWriter().set("folder", options.out).set("clouds", clouds).node());
  }
  return 0;
}

struct ProfileFiles {
  std::string cluster;
  std::string model;
  std::string job;
  std::string out = "costs.json";
  int beside = 0;
};

// Other processes of this machine that do the same work for as long as this lives: clouds that
// share a machine share its memory's bandwidth, too.
class Neighbours {
 public:
  // Call before libtorch has threads: a fork copies only one.
  Neighbours(int count, const std::function<void(int)>& work) {
    for (int i = 0; i < count; ++i) {
      const pid_t pid = fork();
      if (pid < 0) throw RunError("another process can't be started");
      if (pid > 0) {
        pids_.push_back(pid);
        continue;
      }
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      try {
        work(i);
      } catch (const std::exception&) {
        // The parent meets the same problem and reports it.
      }
      _exit(1);
    }
  }
  ~Neighbours() {
    for (const pid_t pid : pids_) {
      kill(pid, SIGKILL);
      waitpid(pid, nullptr, 0);
    }
  }
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;

 private:
  std::vector<pid_t> pids_;
};

int run_profile(const ProfileFiles& files, const ProfileOptions& options,
                const CommonOptions& common) {
  const Cluster cluster = read_cluster_file(files.cluster);
  const Model model = read_model_file(files.model);
  const Job job = read_job_file(files.job);
  const Device* device = cluster.find_device(options.device);
  const auto prepare = [&](int process) {
    const int threads = device ? device->threads : 0;
    bind_to({process * threads, threads, (files.beside + 1) * threads});
    prepare_torch(threads, device ? device->memory_bytes / 4 : 0);
  };
  const Neighbours neighbours(files.beside, [&](int neighbour) {
    prepare(neighbour + 1);
    ProfileOptions once = options;
    once.repetitions = 1;
    while (true) profile(cluster, model, job, once, [](const std::string&) {});
  });
  prepare(0);
  const Costs costs = profile(cluster, model, job, options, [&](const std::string& what) {
    if (!common.quiet) std::cerr << "measuring " << what << '\n';
  });
  write_file(files.out, to_json(costs));
  if (common.json) {
    std::cout << to_json(costs);
    return 0;
  }
  if (common.quiet) return 0;
  for (const auto& [kind, layer] : costs.devices.at(options.device).layers) {
    const double n = layer.forward_s.sequences.back();
    std::cout << kind << ", " << n << " sequences: forward "
              << format_seconds(layer.forward_s.at(n)) << ", backward "
              << format_seconds(layer.backward_s.at(n)) << ", update "
              << format_seconds(layer.update_s) << ", saved "
              << format_bytes(layer.saved_bytes.at(n)) << '\n';
  }
  std::cout << "Costs in " << files.out << '\n';
  return 0;
}

struct LaunchOptions {
  std::string plan;
  std::string data;
  std::string heldout;
  std::string out;
  std::string keys;
  bool emulate_wan = false;
  bool resume = false;
  int max_steps = 0;
};

// The keys of a local run; made anew for every run, because a run's authority is its own.
std::string local_keys(const LaunchOptions& options, const Plan& plan) {
  if (!options.keys.empty()) return options.keys;
  const std::string folder = options.out + "/keys";
  fs::remove_all(folder);
  std::vector<std::string> clouds;
  for (const Cloud& cloud : plan.cluster.clouds) clouds.push_back(cloud.name);
  make_keys(folder, clouds);
  return folder;
}

std::vector<Child> clouds_of(const LaunchOptions& options, const Plan& plan,
                             const CommonOptions& common) {
  const std::string keys = local_keys(options, plan);
  std::vector<Child> children;
  for (const Cloud& cloud : plan.cluster.clouds) {
    const auto runs_here = [&](const StagePlan& stage) { return stage.cloud == cloud.name; };
    if (std::none_of(plan.stages.begin(), plan.stages.end(), runs_here)) continue;
    Child child{
        "cloud " + cloud.name,
        {"train", "--plan", options.plan, "--cloud", cloud.name, "--data", options.data, "--out",
         options.out, "--keys", keys, "--local", "--max-steps", std::to_string(options.max_steps)}};
    if (!options.heldout.empty()) {
      child.arguments.insert(child.arguments.end(), {"--heldout", options.heldout});
    }
    if (options.emulate_wan) child.arguments.emplace_back("--emulate-wan");
    if (options.resume) child.arguments.emplace_back("--resume");
    if (common.quiet) child.arguments.emplace_back("--quiet");
    children.push_back(std::move(child));
  }
  return children;
}

int run_launch(const LaunchOptions& options, const CommonOptions& common) {
  const Plan plan = read_plan_file(options.plan);
  make_folder(options.out);
  if (!common.quiet) std::cerr << one_line(plan) << '\n';
  const std::string result_file = options.out + "/result.json";
  fs::remove(result_file);
  const int code = supervise(clouds_of(options, plan, common), stop_flag());
  if (code != int(ExitCode::done) && code != int(ExitCode::interrupted)) return code;
  const std::string text = read_file(result_file);
  if (common.json) {
    std::cout << text;
    return code;
  }
  const Node node = parse_json(text, result_file);
  Fields result(node, result_file);
  const double step_s = result.quantity("median_step", Unit::seconds);
  std::cout << result.count("steps_done", 0) << " steps done, " << format_seconds(step_s)
            << " a step, " << std::int64_t(result.number("tokens_per_s")) << " tokens/s; loss "
            << result.number("first_loss") << " -> " << result.number("last_loss");
  if (result.has("heldout_loss")) std::cout << ", held out " << result.number("heldout_loss");
  std::cout << "\nTraces in " << options.out << "/traces, checkpoints in " << options.out
            << "/checkpoints, figures in " << result_file << '\n';
  return code;
}

}  // namespace

// Debian's libsentencepiece exports the protobuf it was built with, and libtorch brings another:
// in one process the two crash before main. So the tokenizer is a program of its own, which this
// one becomes.
Command tokenize_command() {
  return {"tokenize", tokenize_summary, "", {}, [](const CommonOptions&) { return 0; }};
}

void become_tokenizer(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "tokenize") return;
  const fs::path bin = fs::read_symlink("/proc/self/exe").parent_path();
  const fs::path program = bin.parent_path() / "libexec" / "nebula" / "tokenize";
  execv(program.c_str(), argv);
  std::cerr << "nebula-exec: " << program.string()
            << " can't be started: is the installation complete?\n";
  std::exit(int(ExitCode::failed));
}

Command keys_command() {
  auto options = std::make_shared<KeysOptions>();
  return {"keys", "makes a run's authority and one certificate a cloud",
          "nebula-exec keys --clouds north south --out keys",
          [options](po::options_description& list) {
            list.add_options()(
                "clouds", po::value(&options->clouds)->multitoken()->value_name("NAME..."),
                "names of the clouds")("cluster", po::value(&options->cluster)->value_name("FILE"),
                                       "cluster file to take the names from")(
                "out", po::value(&options->out)->required()->value_name("FOLDER"),
                "folder to write; nothing in it is overwritten");
          },
          [options](const CommonOptions& common) { return run_keys(*options, common); }};
}

Command profile_command() {
  auto files = std::make_shared<ProfileFiles>();
  auto options = std::make_shared<ProfileOptions>();
  return {
      "profile", "measures what a model's layers and the codecs cost on this machine",
      "nebula-exec profile --cluster c.toml --device cpu-core --model m.toml --job j.toml",
      [files, options](po::options_description& list) {
        list.add_options()("cluster", po::value(&files->cluster)->required()->value_name("FILE"),
                           "cluster file that describes the device")(
            "device", po::value(&options->device)->required()->value_name("KIND"),
            "kind of device that this machine has")(
            "model", po::value(&files->model)->required()->value_name("FILE"), "model file")(
            "job", po::value(&files->job)->required()->value_name("FILE"), "job file")(
            "out", po::value(&files->out)->default_value(files->out)->value_name("FILE"),
            "costs file to write")(
            "beside", po::value(&files->beside)->default_value(files->beside)->value_name("N"),
            "other processes of this machine that will train at the same time")(
            "micro-batch", po::value(&options->largest_micro_batch)->value_name("N"),
            "largest micro-batch measured (default: the global batch)")(
            "repetitions", po::value(&options->repetitions)->default_value(options->repetitions),
            "timed runs of each figure; the median counts");
      },
      [files, options](const CommonOptions& common) {
        if (options->repetitions < 1) throw InputError("--repetitions", "must be at least 1");
        if (options->largest_micro_batch < 0) throw InputError("--micro-batch", "is negative");
        return run_profile(*files, *options, common);
      }};
}

Command launch_command() {
  auto options = std::make_shared<LaunchOptions>();
  return {"launch", "trains by a plan with all clouds on this machine",
          "nebula-exec launch --plan plan.json --data train.tok --out run --emulate-wan",
          [options](po::options_description& list) {
            list.add_options()("plan", po::value(&options->plan)->required()->value_name("FILE"),
                               "plan to train by")(
                "data", po::value(&options->data)->required()->value_name("FILE"),
                "token file to train on")("heldout",
                                          po::value(&options->heldout)->value_name("FILE"),
                                          "token file to evaluate on at the end")(
                "out", po::value(&options->out)->required()->value_name("FOLDER"),
                "folder for traces, checkpoints, keys and result.json")(
                "keys", po::value(&options->keys)->value_name("FOLDER"),
                "keys to use (default: new ones)")("emulate-wan",
                                                   po::bool_switch(&options->emulate_wan),
                                                   "hold frames back as the plan's links would")(
                "resume", po::bool_switch(&options->resume), "go on from the newest checkpoint")(
                "max-steps", po::value(&options->max_steps)->value_name("N"),
                "stop after so many steps");
          },
          [options](const CommonOptions& common) { return run_launch(*options, common); }};
}

}  // namespace nebula
