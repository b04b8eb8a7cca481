// Converts a NodeConfig from and to its document. Reads no file: the caller passes the text.
#include "api/config/node_config.h"

#include <algorithm>

#include "api/config/node_config_check.h"
#include "api/config/node_config_sections.h"
#include "base/core/document.h"
#include "base/core/strings.h"
#include "base/yaml.h"

namespace penstock::api {

namespace {

using base::MapReader;
using base::Mark;
using base::Problems;
using base::Value;
using internal::MapAt;
using internal::Quoted;
using internal::ReadSwitch;
using internal::Text;

constexpr std::string_view kApiVersion = "penstock.io/v1alpha1";
constexpr std::string_view kKind = "NodeConfig";

void ReadHeader(MapReader& top) {
  for (const auto& [key, wanted] :
       {std::pair("apiVersion", kApiVersion), std::pair("kind", kKind)}) {
    const auto text = top.String(key);
    if (!top.Has(key)) {
      top.Problem(key, "is missing; write " + std::string(key) + ": " + std::string(wanted));
    } else if (text && *text != wanted) {
      top.Problem(key, "is \"" + *text + "\"; this program reads \"" + std::string(wanted) + "\"");
    }
  }
}

void ReadPaths(MapReader& top, Problems& problems, PathsConfig& paths) {
  MapReader reader(MapAt(top, "paths"), "paths", problems);
  for (const PathOption& option : PathOptions())
    if (auto path = reader.String(option.key)) paths.*option.member = *std::move(path);
  reader.Finish();
}

/// The names of the section and of the key of a rule; in 0.1.0 `doors` and `door`.
struct AllocatorKeys {
  std::string section = "allocators", rule = "allocator";
};

AllocatorKeys ReadAllocatorKeys(MapReader& top, Problems& problems) {
  if (!top.Has("doors")) return {};
  if (top.Has("allocators")) {
    (void)top.Any("doors");
    top.Problem("doors", "is the deprecated name of allocators, which is there too; merge the two");
    return {};
  }
  problems.Remark(top.mark("doors"),
                  "doors: deprecated; use allocators, and in its rules allocator instead of door");
  return {"doors", "door"};
}

/// Returns the path of a key as the document has it.
std::string AsWritten(std::string_view path, const Value& document) {
  std::string written(path);
  if (!path.starts_with("allocators.") || document.Find("doors") == nullptr) return written;
  written.replace(0, path.find('.'), "doors");
  constexpr std::string_view kRule = "].allocator";
  if (path.ends_with(kRule)) written.replace(written.size() - kRule.size(), kRule.size(), "].door");
  return written;
}

std::vector<AssignmentRule> ReadAssign(MapReader& allocators, const std::string& key,
                                       Problems& problems) {
  std::vector<AssignmentRule> rules;
  const Value* list = allocators.List("assign");
  if (list == nullptr) return rules;
  for (const Value& item : *list->list) {
    MapReader reader(item, allocators.Path("assign") + "[" + std::to_string(rules.size()) + "]",
                     problems);
    AssignmentRule rule{.devices = internal::ReadSelectors(reader, problems)};
    reader.Require(key);
    rule.allocator = reader.OneOf(key, {"kubelet", "local", "none"}).value_or("none");
    reader.Finish();
    rules.push_back(std::move(rule));
  }
  return rules;
}

void ReadAllocators(MapReader& top, Problems& problems, NodeConfig& config) {
  const AllocatorKeys keys = ReadAllocatorKeys(top, problems);
  MapReader allocators(MapAt(top, keys.section), keys.section, problems);
  MapReader kubelet(MapAt(allocators, "kubelet"), allocators.Path("kubelet"), problems);
  ReadSwitch(kubelet, "enabled", config.kubelet_allocator);
  kubelet.Finish();
  MapReader local(MapAt(allocators, "local"), allocators.Path("local"), problems);
  ReadSwitch(local, "enabled", config.local_allocator);
  if (auto group = local.String("group")) config.local_group = *std::move(group);
  for (const std::string& cgroup :
       local.Strings("closedCgroups").value_or(std::vector<std::string>{}))
    config.closed_cgroups.push_back(cgroup.starts_with("/") ? cgroup : "/" + cgroup);
  local.Finish();
  config.assignments = ReadAssign(allocators, keys.rule, problems);
  allocators.Finish();
}

/// Returns the position of the value at a dotted path such as "allocators.assign[0].allocator"; if
/// it is absent, the position of the nearest map above it.
Mark MarkOf(const Value& document, std::string_view path) {
  const Value* at = &document;
  for (const std::string& step : base::Split(path, '.')) {
    const auto bracket = step.find('[');
    const Value* next = at->Find(step.substr(0, bracket));
    if (next != nullptr && bracket != std::string::npos) {
      const auto index =
          base::ParseUint(std::string_view(step).substr(bracket + 1, step.size() - bracket - 2));
      next = next->list && index && *index < next->list->size() ? &(*next->list)[*index] : nullptr;
    }
    if (next == nullptr) break;
    at = next;
  }
  return at->mark;
}

std::string AssignText(const std::vector<AssignmentRule>& rules) {
  if (rules.empty()) return "  assign: []\n";
  std::string text = "  assign:\n";
  for (const AssignmentRule& rule : rules) {
    text +=
        "    - {" +
        (rule.devices.empty() ? "" : "devices: " + internal::SelectorsText(rule.devices) + ", ") +
        "allocator: " + rule.allocator + "}\n";
  }
  return text;
}

}  // namespace

const std::vector<PathOption>& PathOptions() {
  static const std::vector<PathOption> options = {
      {"--driver-root", "driverRoot", &PathsConfig::driver_root,
       "root of the file system that contains the vendor's driver"},
      {"--nvml-library", "nvmlLibrary", &PathsConfig::nvml_library,
       "path of libnvidia-ml.so.1, not relative to the driver root"},
      {"--sysfs-root", "sysfsRoot", &PathsConfig::sysfs_root, "used instead of /sys"},
      {"--dev-root", "devRoot", &PathsConfig::dev_root,
       "folder that contains dev/, or a /dev itself; default: the driver root"},
      {"--proc-root", "procRoot", &PathsConfig::proc_root, "used instead of /proc"},
      {"--os-release", "osRelease", &PathsConfig::os_release,
       "the machine's os-release, for labels"},
      {"--cdi-root", "cdiRoot", &PathsConfig::cdi_root, "folder of CDI specifications"},
      {"--kubelet-dir", "kubeletDir", &PathsConfig::kubelet_dir, "the kubelet's folder"},
      {"--state-dir", "stateDir", &PathsConfig::state_dir,
       "files that must survive a restart of the agent: checkpoint, log"},
      {"--run-dir", "runDir", &PathsConfig::run_dir, "sockets and lock of the running agent"},
      {"--host-driver-root", "hostDriverRoot", &PathsConfig::host_driver_root,
       "path of the driver root on the host, if it differs (in a container)"},
      {"--host-dev-root", "hostDevRoot", &PathsConfig::host_dev_root,
       "path of the dev root on the host: where containers look for device files"},
  };
  return options;
}

base::Result<NodeConfig> ParseNodeConfig(std::string_view text, std::string_view file,
                                         std::vector<std::string>* remarks) {
  ASSIGN(const Value document, base::ParseYaml(text, file));
  Problems problems{std::string(file)};
  NodeConfig config;
  MapReader top(document, "", problems);
  ReadHeader(top);
  MapReader node(MapAt(top, "node"), "node", problems);
  if (auto name = node.String("name")) config.node_name = *std::move(name);
  node.Finish();
  ReadPaths(top, problems, config.paths);
  ReadAllocators(top, problems, config);
  internal::ReadQueue(top, problems, config.queue);
  internal::ReadHealth(top, problems, config.health);
  internal::ReadResources(top, problems, config);
  internal::ReadSharing(top, problems, config.sharing);
  internal::ReadHttp(top, problems, config.http);
  internal::ReadTelemetry(top, problems, config.telemetry);
  internal::ReadUsage(top, problems, config.usage);
  internal::ReadDevicePlugin(top, problems, config);
  internal::ReadContainers(top, problems, config.containers);
  internal::ReadCdi(top, problems, config.cdi);
  internal::ReadLabels(top, problems, config.labels);
  internal::ReadCluster(top, problems, config.cluster);
  MapReader workers(MapAt(top, "workers"), "workers", problems);
  config.restrict_workers = workers.Bool("restrictSystemCalls").value_or(config.restrict_workers);
  workers.Finish();
  top.Finish();
  internal::Check(config, [&](std::string_view key, const std::string& message) {
    const std::string written = AsWritten(key, document);
    problems.Add(MarkOf(document, written), written + ": " + message);
  });
  if (!problems.empty()) return problems.ToError();
  if (remarks != nullptr) *remarks = problems.Remarks();
  return config;
}

std::string ToYaml(const NodeConfig& config) {
  std::string text =
      "apiVersion: " + std::string(kApiVersion) + "\nkind: " + std::string(kKind) + "\n";
  text += "node:\n  name: " + Quoted(config.node_name) + "\npaths:\n";
  for (const PathOption& option : PathOptions())
    text += "  " + std::string(option.key) + ": " + Quoted(config.paths.*option.member) + "\n";
  text +=
      "allocators:\n  kubelet:\n    enabled: " + std::string(Text(config.kubelet_allocator)) + "\n";
  text += "  local:\n    enabled: " + std::string(Text(config.local_allocator)) +
          "\n    group: " + Quoted(config.local_group) + "\n";
  std::vector<std::string> closed;
  for (const std::string& cgroup : config.closed_cgroups) closed.push_back(Quoted(cgroup));
  text += "    closedCgroups: [" + base::Join(closed, ", ") + "]\n";
  text += AssignText(config.assignments);
  text += internal::QueueText(config.queue);
  text += internal::HealthText(config.health) + internal::ResourcesText(config) +
          internal::SharingText(config.sharing);
  text += internal::HttpText(config.http) + internal::TelemetryText(config.telemetry) +
          internal::UsageText(config.usage);
  text += internal::DevicePluginText(config) + internal::ContainersText(config.containers) +
          internal::CdiText(config.cdi);
  text += internal::LabelsText(config.labels) + internal::ClusterText(config.cluster);
  text += "workers:\n  restrictSystemCalls: " +
          std::string(config.restrict_workers ? "true" : "false") + "\n";
  return text;
}

}  // namespace penstock::api
