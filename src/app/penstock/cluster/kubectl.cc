// The command line of the kubectl plugin: its own verbs and options, implemented by the same
// functions as `penstock`.
#include "app/penstock/cluster/kubectl.h"

#include <algorithm>
#include <iostream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "app/penstock/cluster/cluster_verbs.h"
#include "app/penstock/common/introspect.h"

namespace penstock::app {

namespace {

constexpr int kWrongUse = 2;
constexpr std::string_view kPlugin = "kubectl-penstock", kCompletion = "kubectl_complete-penstock";

constexpr char kFooter[] = R"(Examples:
  kubectl penstock nodes             # every node: drivers, devices, allocators, problems
  kubectl penstock explain gpu-1     # why it has the capacity that it has, and what to do next
  kubectl penstock status gpu-1      # its devices, as `penstock status` shows them there
  kubectl penstock migrate           # from NVIDIA's device plugin: what would change

Completion: add kubectl_complete-penstock, a link to this program, to the PATH.
Exit status: 0 done, 1 failed (a message says why), 2 usage error.)";

constexpr char kStatusFooter[] = R"(Examples:
  kubectl penstock status            # all nodes
  kubectl penstock status gpu-1 -o wide
  kubectl penstock status gpu-1 -o json | jq '.devices[] | select(.health.state != "healthy")'

The cluster has only the number of holders of a device; `penstock ps` on the node names them.
Exit status: 0 shown, 1 the cluster could not be queried, or the node has no report.)";

std::string_view BaseName(std::string_view program) {
  return program.substr(program.rfind('/') + 1);
}

struct KubectlLine {
  KubectlLine();

  CLI::App app{"Penstock's view of a cluster: which accelerators each node has, and why.",
               "kubectl penstock"};
  Common common;
  ClusterOptions cluster;
  int exit_code = 0;
};

KubectlLine::KubectlLine() {
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("penstock ") + PENSTOCK_VERSION);
  app.require_subcommand(0, 1);
  AddOutputOption(app, common);
  app.add_option_function<std::string>(
         "--kubeconfig",
         [this](const std::string& file) { common.settings.flags["--kubeconfig"] = file; },
         "as after the verb")
      ->type_name("FILE")
      ->group("");
  CLI::App* status =
      app.add_subcommand(
             "status", "Show a node's devices: their health, who allocates them and who holds them")
          ->fallthrough();
  status->footer(kStatusFooter);
  AddClusterOptions(*status, cluster);
  status->add_option("NODE", cluster.node, "the node's name [all nodes]")->type_name("");
  status->callback([this] { exit_code = NodeStatus(common, Completed(cluster, common)); });
  AddClusterVerbs(app, common, "kubectl penstock", exit_code);
}

}  // namespace

bool IsCalledByKubectl(std::string_view program) {
  return BaseName(program) == kPlugin || BaseName(program) == kCompletion;
}

int KubectlMain(int argc, char** argv) {
  KubectlLine line;
  std::vector<std::string> arguments(argv + 1, argv + argc);
  if (BaseName(argv[0]) == kCompletion) {
    std::cout << CompleteForKubectl(line.app, arguments, [] { return NodeNames({}); });
    return 0;
  }
  std::reverse(arguments.begin(), arguments.end());  // in the order that CLI11 expects
  try {
    line.app.parse(std::move(arguments));
  } catch (const CLI::ParseError& error) { return line.app.exit(error) == 0 ? 0 : kWrongUse; }
  if (!line.app.get_subcommands().empty()) return line.exit_code;
  std::cerr << line.app.help();
  return kWrongUse;
}

}  // namespace penstock::app
