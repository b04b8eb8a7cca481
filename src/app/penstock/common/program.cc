#include "app/penstock/common/program.h"

#include <algorithm>
#include <array>
#include <iostream>
#include <memory>

#include "app/agent_command.h"
#include "app/command/completion.h"
#include "app/command/help.h"
#include "app/penstock/cluster/cluster_verbs.h"
#include "os/core/file.h"

namespace penstock::app {

namespace {

using base::Code;
using base::Error;
using base::Result;

constexpr char kExamples[] =
    R"(penstock up --simulate dgx-a100 --detach    # a simulated machine, for a trial
penstock run --gpus 1 -- nvidia-smi -L      # a program on one GPU
penstock status                             # devices, health, allocators
penstock ps                                 # the holders of devices
penstock top                                # activity of devices and their processes, live
penstock run --share 4 -- python serve.py   # a quarter of the time of one GPU
penstock down)";

constexpr char kDetails[] =
    R"(Options of the node are accepted before and after every verb; `penstock help options` lists them.
-o json, yaml, name and jsonpath=TEMPLATE (as in kubectl) print the same data for programs.)";

constexpr char kExitStatus[] =
    "0 done, 1 failed (a message says why), 2 usage error, 3 the answer is no (status --check, "
    "wait). `run` exits with the status of its command. `config check`, `cdi validate`, "
    "`validate`, "
    "`runtime doctor`, `migrate` and `cleanup --check` answer no with 1";

constexpr char kCompletionExamples[] =
    R"(source <(penstock completion bash)
penstock completion zsh > "${fpath[1]}/_penstock"
penstock completion fish > ~/.config/fish/completions/penstock.fish)";

constexpr char kKubectlExamples[] =
    R"(kubectl penstock nodes             # every node: drivers, devices, allocators, problems
kubectl penstock policies          # how far the operator is
kubectl penstock explain gpu-1     # why it has the capacity that it has, and what to do next
kubectl penstock status gpu-1      # its devices, as `penstock status` shows them there
kubectl penstock migrate           # from NVIDIA's device plugin: what would change)";

constexpr char kKubectlStatusExamples[] =
    R"(kubectl penstock status            # all nodes
kubectl penstock status gpu-1 -o wide
kubectl penstock status gpu-1 -w
kubectl penstock status gpu-1 -o json | jq '.status.devices[] | select(.health.state != "healthy")')";

std::string Renamed(std::string text, std::string_view name, const std::string& other) {
  for (std::size_t at = 0; (at = text.find(name, at)) != std::string::npos; at += other.size())
    text.replace(at, name.size(), other);
  return text;
}

Verb CompletionVerb(const Verb& program) {
  const auto shell = std::make_shared<std::string>();
  return {.name = "completion",
          .summary = "Print a completion script for a shell",
          .examples = Renamed(kCompletionExamples, "penstock", program.name),
          .exit_status = "0 printed, 2 usage error",
          .options = {Argument("SHELL", shell.get(), "bash, zsh or fish")
                          .OneOf({"bash", "zsh", "fish"})
                          .Required()},
          .show = [&program, shell]() -> Result<Shown> {
            return Shown(command::Completion(program, *shell));
          }};
}

Verb VersionVerb(const Common& common) {
  return {.name = "version",
          .summary = "Print the version",
          .examples = "penstock version\npenstock version -o json",
          .exit_status = "0 printed",
          .formats = command::PlainFormats(),
          .show = [&common]() -> Result<Shown> {
            if (common.json()) return Shown("{\"version\": \"" PENSTOCK_VERSION "\"}");
            return Shown("penstock " PENSTOCK_VERSION);
          }};
}

/// Writes the man pages of this program and of the agent.
base::Status WriteManPages(const Verb& program, const std::string& folder) {
  AgentCommandLine line;
  const Verb agent = AgentCommand(line);
  auto pages = command::ManPages(program, 1);
  pages.merge(command::ManPages(agent, 8));
  TRY(os::MakeDirectories(folder));
  for (const auto& [name, page] : pages) TRY(os::WriteFileAtomically(folder + "/" + name, page));
  return {};
}

struct HelpOptions {
  std::vector<std::string> words;
  bool markdown = false;
  std::string man;
};

Result<Shown> Help(const Verb& program, const HelpOptions& options) {
  if (options.markdown) return Shown(command::Markdown(program));
  if (!options.man.empty()) {
    TRY(WriteManPages(program, options.man));
    return Shown("");
  }
  const std::size_t columns = command::HelpColumns(1);
  if (options.words == std::vector<std::string>{"options"}) {
    Verb all = program;
    all.verbs.clear();
    all.examples = all.details = all.exit_status = "";
    all.shares = NodeOptionNames();
    return Shown(command::HelpOf({&all}, columns));
  }
  const command::Way way = command::Follow(program, options.words);
  return Shown(command::HelpOf(way, columns));
}

Verb HelpVerb(const Verb& program) {
  const auto options = std::make_shared<HelpOptions>();
  return {.name = "help",
          .summary = "Show help on a verb",
          .examples =
              "penstock help run\npenstock help cdi generate\npenstock help options     # those "
              "that all verbs accept",
          .exit_status = "0 shown, 2 there is no such verb",
          .options = {Argument("VERB", &options->words, "a verb, or options [a summary of all]"),
                      Flag("--markdown", &options->markdown,
                           "everything, as the page docs/reference/cli.md"),
                      Value("--man", &options->man, "DIR", "write man pages into a folder")},
          .check = [&program, options]() -> base::Status {
            if (options->words == std::vector<std::string>{"options"}) return {};
            const auto way = command::Follow(program, options->words);
            if (way.size() == options->words.size() + 1) return {};
            return Error(Code::kInvalidArgument, "there is no verb \"" +
                                                     options->words[way.size() - 1] + "\"; see " +
                                                     command::NameOf(way) + " --help");
          },
          .show = [&program, options] { return Help(program, *options); }};
}

/// Nodes as arguments, as kubectl users name objects, or by --node as elsewhere.
Verb KubectlStatusVerb(const Common& common) {
  struct Given {
    ClusterOptions cluster;
    std::string node;
  };
  const auto given = std::make_shared<Given>();
  Verb verb{.name = "status",
            .summary = "Show a node's devices: their health, who allocates them and who holds them",
            .examples = kKubectlStatusExamples,
            .details =
                "The cluster has only the number of holders of a device; `penstock ps` on the node "
                "names them.",
            .exit_status = "0 shown, 1 the cluster could not be queried, or the node has no report",
            .options = {Argument("NODE", &given->node, "the node's name [all nodes]"),
                        Value("--node", &given->cluster.node, "NODE", "the same as the argument")
                            .Excludes({"NODE"})},
            .formats = command::WideFormats(),
            .names = {"device", "..status.devices[*].id"},
            .watch = true,
            .watch_interval = kWatchInterval,
            .show = [given, &common] {
              ClusterOptions cluster = Completed(given->cluster, common);
              if (cluster.node.empty()) cluster.node = given->node;
              return NodeStatus(common, cluster);
            }};
  AddClusterOptions(verb, given->cluster);
  return verb;
}

/// The verbs of nvidia-mig-parted, in its order.
constexpr std::array<const char*, 6> kMigPartedVerbs{"apply",           "assert",     "export",
                                                     "generate-config", "checkpoint", "restore"};

/// Adds the long form of -o.
void AddOutputFormat(Verb& verb, Common& common) {
  const auto format = std::make_shared<std::string>();
  verb.options.push_back(Value("--output-format", format.get(), "FORMAT", "the same as -o")
                             .OneOf(verb.formats)
                             .Environment("MIG_PARTED_OUTPUT_FORMAT"));
  verb.show = [show = verb.show, format, &common] {
    if (!format->empty()) common.output.format = *format;
    return show();
  };
}

}  // namespace

void DefineMigParted(Verb& program, Common& common) {
  common.as_mig_parted = true;
  program.name = kMigPartedName;
  program.version = program.name + " version " PENSTOCK_VERSION;
  program.summary = "Divides GPUs into MIG devices, as NVIDIA's program of this name";
  program.details =
      "This is penstock mig, with NVIDIA's verbs, texts and exit statuses. Options of the node are "
      "accepted as there.";
  program.exit_status = "0 done, 1 anything else";
  program.options = NodeOptions(common.settings);
  program.options.push_back(
      Flag("-d,--debug", &common.debug, "print progress, and the output of hooks")
          .Environment("MIG_PARTED_DEBUG"));
  program.shares = {"--debug"};
  const Verb mig = MigVerb(common);
  for (const char* name : kMigPartedVerbs) {
    Verb verb = *std::ranges::find(mig.verbs, name, &Verb::name);
    verb.examples = Renamed(verb.examples, "penstock mig", program.name);
    verb.exit_status = "0 done, 1 anything else";
    if (verb.formats == std::vector<std::string>{"yaml", "json"}) AddOutputFormat(verb, common);
    program.verbs.push_back(std::move(verb));
  }
  program.verbs.push_back(CompletionVerb(program));
  program.verbs.push_back(HelpVerb(program));
  program.verbs.back().examples = program.name + " help apply";
}

void DefinePenstock(Verb& program, Common& common) {
  program.name = "penstock";
  program.summary = "Shares this machine's accelerators among pods, containers and local users";
  program.examples = kExamples;
  program.details = kDetails;
  program.exit_status = kExitStatus;
  program.options = NodeOptions(common.settings);
  program.verbs = {UpVerb(common),
                   DownVerb(common),
                   RunVerb(common),
                   QueueVerb(common),
                   AssignVerb(common),
                   DoorVerb(common),
                   StatusVerb(common),
                   ValidateVerb(common),
                   PsVerb(common),
                   WaitVerb(common),
                   TopVerb(common),
                   UsageVerb(common),
                   NodesVerb(common, program.name),
                   PoliciesVerb(common, program.name),
                   ExplainVerb(common, program.name),
                   MigrateVerb(common),
                   SupportBundleVerb(common, program.name),
                   CleanupVerb(common, program.name),
                   CdiVerb(common),
                   RuntimeVerb(common),
                   MigVerb(common),
                   DriverVerb(common),
                   MetricsVerb(common),
                   PlanVerb(common),
                   ConfigVerb(common),
                   CompletionVerb(program),
                   VersionVerb(common),
                   HelpVerb(program)};
}

void DefineKubectlPenstock(Verb& program, Common& common) {
  program.name = "kubectl penstock";
  program.summary = "Penstock's view of a cluster: which accelerators each node has, and why";
  program.examples = kKubectlExamples;
  program.details =
      "Completion: add kubectl_complete-penstock, a link to this program, to the PATH.";
  program.exit_status = "0 done, 1 failed (a message says why), 2 usage error";
  program.options = {
      Value(
          "--kubeconfig",
          [&common](const std::string& file) { common.settings.flags["--kubeconfig"] = file; },
          "FILE", "as after the verb")
          .Hidden()};
  program.verbs = {KubectlStatusVerb(common),
                   NodesVerb(common, program.name),
                   PoliciesVerb(common, program.name),
                   ExplainVerb(common, program.name),
                   MigrateVerb(common),
                   SupportBundleVerb(common, program.name),
                   CleanupVerb(common, program.name)};
}

}  // namespace penstock::app
