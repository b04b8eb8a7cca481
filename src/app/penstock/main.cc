// penstock: the command-line tool for users. Defines the command line; the verbs are functions in
// other files.
#include <algorithm>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "app/penstock/cluster/cluster_verbs.h"
#include "app/penstock/cluster/kubectl.h"
#include "app/penstock/common/introspect.h"
#include "app/penstock/common/verbs.h"
#include "app/penstock/config/config.h"
#include "app/penstock/local/plan.h"
#include "app/penstock/local/query_agent.h"
#include "app/penstock/local/up.h"
#include "base/core/strings.h"

namespace penstock::app {

namespace {

constexpr int kWrongUse = 2;

constexpr char kFooter[] = R"(Examples:
  penstock up --simulate dgx-a100 --detach    # a simulated machine, for a trial
  penstock run --gpus 1 -- nvidia-smi -L      # a program on one GPU
  penstock status                             # devices, health, allocators
  penstock ps                                 # the holders of devices
  penstock top                                # activity of devices and their processes, live
  penstock run --share 4 -- python serve.py   # a quarter of the time of one GPU
  penstock down

Exit status: 0 done, 1 failed (a message says why), 2 usage error. `run` exits with the status of its command.)";

constexpr char kUpFooter[] = R"(Examples:
  penstock up                                    # this machine's accelerators; Ctrl-C stops the agent
  penstock up --detach                           # in the background, until `penstock down`
  penstock up --simulate t4-x1 --run-dir ~/sim/run --state-dir ~/sim/state --listen off
  penstock up --config /etc/penstock/node.yaml

Exit status: the agent's own in the foreground; with --detach 0 once it is ready, 1 if it could not start or
was already running.)";

constexpr char kDownFooter[] = R"(Examples:
  penstock down
  penstock down --run-dir ~/sim/run

Exit status: 0 no agent is running, 1 it could not be stopped.)";

constexpr char kStatusFooter[] = R"(Examples:
  penstock status
  penstock status -o wide
  penstock status -o json | jq '.devices[] | select(.health.state != "healthy")'
  penstock status -o json | jq '[.devices[] | .free] | add'    # the shares and whole devices that are free now
  penstock status --node gpu-1                # another node's, from its object in the cluster

If devices are shared, SHARES shows how many shares are free and ISOLATION what keeps their holders apart: none,
memory-per-process, memory, memory-compute or hardware. -o wide adds the limits of each process.

Exit status: 0 shown, 1 no agent responds.)";

constexpr char kPsFooter[] = R"(Examples:
  penstock ps
  penstock ps -o wide                          # with the slots' own names
  penstock ps -o json | jq -r '.holders[] | [.index, .slot, .user, .pod] | @tsv'

Exit status: 0 shown, 1 no agent responds.)";

constexpr char kPlanFooter[] = R"(Examples:
  penstock plan new.yaml           # what this file would change on this node
  penstock plan                    # the current configuration, if it waits for a restart or was rejected
  penstock plan new.yaml -o json | jq '.resources[] | select(.holders != [])'
  penstock plan --explain          # which GPUs a request for 1, 2, ... would get now, and their links

Exit status: 0 shown, 1 the configuration has problems (all of them shown) or no agent responds.)";

constexpr char kConfigFooter[] = R"(Examples:
  penstock config check node.yaml
  penstock config check time-slicing-config.yaml --against dgx-a100    # a ConfigMap's manifest; what each key would offer
  penstock config check counters.csv --against dgx-a100                # dcgm-exporter's list; what an A100 does not have
  penstock config show --config node.yaml --run-dir /tmp/run    # what would be in force

Exit status: 0 valid, 1 there are problems, all of them shown with line and column.)";

constexpr char kCompletionFooter[] = R"(Examples:
  source <(penstock completion bash)
  penstock completion zsh > "${fpath[1]}/_penstock"
  penstock completion fish > ~/.config/fish/completions/penstock.fish)";

/// The command line, its parsed values and its exit status.
struct CommandLine {
  CommandLine();

  CLI::App app{"Shares this machine's accelerators among pods, containers and local users.",
               "penstock"};
  Common common;
  UpOptions up;
  ClusterOptions cluster;
  std::string output = "table";
  std::string config_file, plan_file;
  std::string against;
  bool lenient = false;
  std::string shell;
  std::string help_on;
  bool markdown = false;
  bool explain_plan = false;
  int exit_code = 0;

  /// Whether the first word is not a verb; if so, prints the verb that was probably meant.
  bool RefusesVerb() const;

 private:
  CLI::App* Verb(CLI::App& parent, const std::string& name, const std::string& description,
                 const char* footer, std::function<int()> run);
  void AddAgentVerbs();
  void AddConfig();
  void AddHelp();
  int Help() const;
};

CommandLine::CommandLine() {
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("penstock ") + PENSTOCK_VERSION);
  app.require_subcommand(0, 1);
  common.terminal = ::isatty(STDERR_FILENO) != 0;
  AddOutputOption(app, common);
  AddNodeOptions(app, common.settings);
  AddAgentVerbs();
  AddConfig();
  AddHelp();
}

CLI::App* CommandLine::Verb(CLI::App& parent, const std::string& name,
                            const std::string& description, const char* footer,
                            std::function<int()> run) {
  CLI::App* verb = parent.add_subcommand(name, description)->fallthrough();
  verb->footer(footer);
  if (run) verb->callback([this, run = std::move(run)] { exit_code = run(); });
  return verb;
}

void CommandLine::AddAgentVerbs() {
  CLI::App* verb = Verb(app, "up", "Start an agent on this machine and show what it found",
                        kUpFooter, [this] { return Up(common, up); });
  verb->add_option("--simulate", up.simulate,
                   "a simulated machine instead of this one's devices (see penstock-sim list)")
      ->type_name("MACHINE");
  verb->add_flag("--detach", up.detach, "return once the agent is ready, and leave it running");
  Verb(app, "down", "Stop the agent, and remove a simulated machine", kDownFooter,
       [this] { return Down(common); });
  AddRun(app, common, exit_code);
  AddQueue(app, common, exit_code);
  AddAssign(app, common, exit_code);
  CLI::App* status =
      Verb(app, "status", "Show devices: their health, who allocates them and who holds them",
           kStatusFooter, [this] {
             return cluster.node.empty() ? Status(common)
                                         : NodeStatus(common, Completed(cluster, common));
           });
  status->add_option("--node", cluster.node, "a node of the cluster, instead of this machine")
      ->type_name("NODE");
  AddClusterOptions(*status, cluster);
  Verb(app, "ps", "Show who holds which device", kPsFooter, [this] { return Ps(common); });
  AddTop(app, common, exit_code);
  AddUsage(app, common, exit_code);
  AddClusterVerbs(app, common, "penstock", exit_code);
  AddCdi(app, common, exit_code);
  AddRuntime(app, common, exit_code);
  AddMetrics(app, common, exit_code);
  CLI::App* plan = Verb(app, "plan", "Show what another configuration would change", kPlanFooter,
                        [this] { return Plan(common, plan_file, explain_plan); });
  plan->add_option("FILE", plan_file, "a configuration; - for standard input [the current one]")
      ->type_name("");
  plan->add_flag("--explain", explain_plan,
                 "also show which devices requests for one, two, ... would get now, and why");
}

void CommandLine::AddConfig() {
  CLI::App* config = Verb(app, "config", "Check a configuration, or show the one in force",
                          kConfigFooter, nullptr);
  config->require_subcommand(1);
  CLI::App* check = Verb(*config, "check", "Show all problems of a file", "",
                         [this] { return CheckConfig(common, config_file, against, lenient); });
  check
      ->add_option("FILE", config_file,
                   "a NodeConfig, a file of NVIDIA's device plugin or dcgm-exporter, or a "
                   "ConfigMap or a chart's values that contain them; - for standard input")
      ->required()
      ->type_name("");
  check
      ->add_option("--against", against,
                   "also show what it would offer on this simulated machine, and which metrics its "
                   "devices do not have (see penstock-sim list)")
      ->type_name("MACHINE");
  check->add_flag("--lenient", lenient,
                  "read a file of NVIDIA's device plugin as the agent does: what the plugin "
                  "ignores is a remark");
  Verb(*config, "show",
       "Print the effective configuration from the file and the flags, with every key", "",
       [this] { return ShowConfig(common); });
}

void CommandLine::AddHelp() {
  CLI::App* completion =
      Verb(app, "completion", "Print a completion script for a shell", kCompletionFooter, [this] {
        std::cout << Completion(app, shell);
        return 0;
      });
  completion->add_option("SHELL", shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->type_name("");
  Verb(app, "version", "Print the version", "", [] {
    std::cout << "penstock " << PENSTOCK_VERSION << "\n";
    return 0;
  });
  CLI::App* help = Verb(app, "help", "Show help on a verb", "", [this] { return Help(); });
  help->add_option("VERB", help_on, "a verb [a summary of all]")->type_name("");
  help->add_flag("--markdown", markdown, "everything, as the page docs/reference/cli.md");
}

bool CommandLine::RefusesVerb() const {
  const auto words = app.remaining();
  if (!app.get_subcommands().empty() || words.empty() || words.front().starts_with("-"))
    return false;
  std::vector<std::string> verbs;
  for (const CLI::App* verb : VerbsOf(app)) verbs.push_back(verb->get_name());
  std::cerr << "penstock: there is no verb \"" << words.front() << "\"; ";
  if (const auto near = base::Nearest(words.front(), verbs)) {
    std::cerr << "did you mean \"" << *near << "\"?\n";
  } else {
    std::cerr << "there are " << base::Join(verbs, ", ") << "\n";
  }
  return true;
}

int CommandLine::Help() const {
  if (markdown) {
    std::cout << Markdown(app);
    return 0;
  }
  const auto verbs =
      app.get_subcommands([this](const CLI::App* verb) { return verb->get_name() == help_on; });
  if (verbs.empty() && !help_on.empty()) {
    std::cerr << "penstock help: there is no verb \"" << help_on << "\"; see penstock --help\n";
    return kWrongUse;
  }
  std::cout << (verbs.empty() ? HelpOf(app, "") : HelpOf(*verbs.front(), "penstock"));
  return 0;
}

/// Moves flags that nvidia-ctk accepts before its verbs: "--quiet cdi generate" becomes "cdi
/// generate --quiet".
void MoveToolkitFlags(std::vector<std::string>& arguments) {
  const auto is_flag = [](const std::string& word) {
    return word == "--quiet" || word == "--debug" || word == "-d";
  };
  const auto verb = std::find_if_not(arguments.begin(), arguments.end(), is_flag);
  if (verb != arguments.end() && *verb == "cdi")
    std::rotate(arguments.begin(), verb, arguments.end());
}

int Main(int argc, char** argv) {
  CommandLine line;
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  MoveToolkitFlags(arguments);
  line.common.command = CutCommand(line.app, arguments);
  std::reverse(arguments.begin(), arguments.end());  // in the order that CLI11 expects
  try {
    line.app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) {
    if (line.RefusesVerb()) return kWrongUse;
    return line.app.exit(error) == 0 ? 0 : kWrongUse;
  }
  if (line.app.get_subcommands().empty()) {
    std::cerr << line.app.help();
    return kWrongUse;
  }
  return line.exit_code;
}

}  // namespace

}  // namespace penstock::app

int main(int argc, char** argv) {
  const bool by_kubectl = argc > 0 && penstock::app::IsCalledByKubectl(argv[0]);
  return by_kubectl ? penstock::app::KubectlMain(argc, argv) : penstock::app::Main(argc, argv);
}
