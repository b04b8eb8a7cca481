// `penstock status` and `ps`.
#include "app/penstock/local/status.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>

#include "analysis/explain/nodes.h"
#include "api/node_state.h"
#include "app/penstock/cluster/cluster.h"
#include "app/penstock/cluster/cluster_verbs.h"
#include "app/penstock/common/verbs.h"
#include "app/penstock/local/query_agent.h"
#include "app/penstock/local/show.h"
#include "base/core/strings.h"

namespace penstock::app {

namespace {

using base::Code;
using base::Error;
using base::Result;

constexpr char kStatusExamples[] =
    R"(penstock status
penstock status 0 3                         # two devices
penstock status -o wide
penstock status -w                          # again whenever it changes
penstock status --check || alert            # only what is wrong; exit status 3 if anything is
penstock status -o jsonpath='{.status.devices[?(@.health.state!="healthy")].id}'
penstock status -o json | jq '[.status.devices[].free] | add'    # the shares and whole devices that are free now
penstock status --node gpu-1                # another node's, from its object in the cluster)";

constexpr char kStatusDetails[] =
    R"(If devices are shared, SHARES shows how many shares are free and ISOLATION what keeps their holders
apart: none, memory-per-process, memory, memory-compute or hardware. -o wide adds the limits of each
process.)";

constexpr char kPsExamples[] =
    R"(penstock ps
penstock ps -o wide                          # with the slots' own names
penstock ps -w                               # again whenever it changes
penstock ps -o json | jq -r '.holders[] | [.index, .slot, .user, .pod] | @tsv')";

struct StatusOptions {
  std::vector<std::string> devices;
  ClusterOptions cluster;
  bool check = false;
};

std::string ProblemsText(const std::vector<std::string>& problems) {
  std::string text;
  for (const std::string& problem : problems) text += Printable(problem) + "\n";
  return text;
}

Result<Shown> ShowLocal(const Common& common, const StatusOptions& options) {
  ASSIGN(const api::NodeConfig config, Resolve(common.settings));
  ASSIGN(api::Report report, QueryReport(config.paths.run_dir));
  TRY(KeepDevices(options.devices, report));
  const auto problems = options.check ? ReportProblems(report) : std::vector<std::string>();
  const int status = problems.empty() ? command::kDone : command::kNo;
  if (common.json()) return Shown(api::NodeDocument(report), status);
  if (options.check) return Shown(ProblemsText(problems), status);
  return Shown(ShowStatus(report, common.wide(), common.style(), std::chrono::system_clock::now()));
}

Result<Shown> ShowStatusOf(const Common& common, const StatusOptions& options) {
  if (options.cluster.node.empty()) return ShowLocal(common, options);
  return NodeStatus(common, Completed(options.cluster, common));
}

Result<Shown> ShowPs(const Common& common) {
  ASSIGN(const api::NodeConfig config, Resolve(common.settings));
  if (common.json()) {
    ASSIGN(const std::string answer, QueryLine(config.paths.run_dir, R"({"op":"ps"})"));
    return Shown(answer);
  }
  ASSIGN(const api::Report report, QueryReport(config.paths.run_dir));
  return Shown(
      ShowHolders(report, common.wide(), common.style(), std::chrono::system_clock::now()));
}

}  // namespace

Result<const api::DeviceReport*> FindDevice(const api::Report& report, const std::string& word) {
  std::vector<std::string> names;
  for (const api::DeviceReport& device : report.devices) {
    const std::string index = NumberOf(device);
    if (word == index || word == device.id || (!word.empty() && word == device.pci)) return &device;
    for (const std::string& name : {index, device.id, device.pci})
      if (!name.empty()) names.push_back(name);
  }
  const auto near = base::Nearest(word, names);
  return Error(Code::kNotFound, "there is no device \"" + word + "\" on this node" +
                                    (near ? "; did you mean \"" + *near + "\"?"
                                          : "; `penstock status -o wide` shows them"));
}

base::Status KeepDevices(const std::vector<std::string>& words, api::Report& report) {
  std::set<std::string> kept;
  std::vector<std::string> problems;
  for (const std::string& word : words) {
    const auto device = FindDevice(report, word);
    if (device.ok())
      kept.insert((*device)->id);
    else
      problems.push_back(device.error().message());
  }
  if (!problems.empty()) return Error(Code::kNotFound, base::Join(problems, "\n"));
  if (!words.empty())
    std::erase_if(report.devices,
                  [&kept](const api::DeviceReport& one) { return !kept.contains(one.id); });
  return {};
}

std::vector<std::string> ReportProblems(const api::Report& report) {
  std::vector<std::string> problems;
  for (const api::DeviceReport& device : report.devices) {
    const std::string number = NumberOf(device);
    const std::string name = (number.empty() ? "" : "device " + number + " ") + device.id;
    if (device.health_state != "healthy")
      problems.push_back(name + ": " + device.health_state +
                         (device.health_reason.empty() ? "" : ": " + device.health_reason));
    else if (!device.withheld.empty())
      problems.push_back(name + ": " + device.withheld);
  }
  for (const std::string& problem : analysis::NodeProblemsOf(report)) problems.push_back(problem);
  return problems;
}

Verb StatusVerb(const Common& common) {
  const auto options = std::make_shared<StatusOptions>();
  Verb verb{
      .name = "status",
      .summary = "Show devices: their health, who allocates them and who holds them",
      .examples = kStatusExamples,
      .details = kStatusDetails,
      .exit_status = "0 shown, 1 no agent responds, 3 with --check if anything is wrong",
      .options = {Argument("DEVICE", &options->devices, "indices, UUIDs or PCI addresses [all]")
                      .Separated(),
                  Flag("--check", &options->check,
                       "show only what is wrong, with the reason; the exit status says whether "
                       "anything is"),
                  Value("--node", &options->cluster.node, "NODE",
                        "a node of the cluster, instead of this machine")
                      .Excludes({"DEVICE", "--check"})},
      .shares = AgentOptionNames(),
      .formats = command::WideFormats(),
      .names = {"device", ".status.devices[*].id"},
      .watch = true,
      .show = [options, &common] { return ShowStatusOf(common, *options); }};
  AddClusterOptions(verb, options->cluster);
  return verb;
}

Verb PsVerb(const Common& common) {
  return {.name = "ps",
          .summary = "Show who holds which device",
          .examples = kPsExamples,
          .exit_status = "0 shown, 1 no agent responds",
          .shares = AgentOptionNames(),
          .formats = command::WideFormats(),
          .names = {"slot", ".holders[*].slot"},
          .watch = true,
          .show = [&common] { return ShowPs(common); }};
}

}  // namespace penstock::app
