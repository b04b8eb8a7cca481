// Checks what one key alone cannot show, and rules for a value from any source (a file or a flag).
// Touches no file.
#include "api/config/node_config_check.h"

#include <algorithm>
#include <cctype>

#include "api/allocators.h"
#include "api/config/node_config_keys.h"
#include "api/config/value_forms.h"
#include "api/labels.h"
#include "api/listen.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"

namespace penstock::api::internal {

namespace {

/// Room for the names of our sockets in <kubeletDir>/device-plugins; each registration needs a
/// unique name (docs/reference/config.md).
constexpr std::size_t kPluginSocketName = 40;

void CheckSocketPath(const std::string& folder, std::size_t name, std::string_view what,
                     std::string_view key, const ReportProblem& report) {
  if (folder.size() + name <= kLongestSocketPath) return;
  report(key, "is too long: the path of " + std::string(what) + " in it would have " +
                  std::to_string(folder.size() + name) +
                  " bytes, but a unix socket's path has at most 107; choose a shorter folder");
}

/// Whether this is a path in the control group hierarchy. The root is excluded: it contains every
/// process of every container.
bool IsCgroup(const std::string& path) {
  const auto parts = base::Split(std::string_view(path).substr(1), '/');
  return std::ranges::none_of(parts, [](const std::string& part) {
    return part.empty() || part == "." || part == ".." ||
           part.find_first_of(" \t\n\"") != std::string::npos;
  });
}

void CheckClosedCgroups(const std::vector<std::string>& cgroups, const ReportProblem& report) {
  constexpr std::size_t kMax = 64;
  if (cgroups.size() > kMax)
    report("allocators.local.closedCgroups",
           "names more than " + std::to_string(kMax) + " control groups");
  for (std::size_t i = 0; i < cgroups.size(); ++i) {
    const std::string key = base::Item("allocators.local.closedCgroups", i);
    if (!IsCgroup(cgroups[i])) {
      report(key, "\"" + cgroups[i] +
                      "\" is not a path of a control group below the root, such as user.slice or "
                      "system.slice/cron.service");
    } else if (cgroups[i].starts_with("/kubepods")) {
      report(key, "\"" + cgroups[i] +
                      "\" contains pods, to which the kubelet allocates devices and the container "
                      "engine closes the others");
    }
  }
}

void CheckAllocators(const NodeConfig& config, const ReportProblem& report) {
  CheckClosedCgroups(config.closed_cgroups, report);
  if (config.local_group.empty() || config.local_group.find_first_of(": \t\n") != std::string::npos)
    report("allocators.local.group", "\"" + config.local_group + "\" is not a group name");
  for (std::size_t i = 0; i < config.assignments.size(); ++i) {
    const AssignmentRule& rule = config.assignments[i];
    const std::string key = base::Item("allocators.assign", i) + ".allocator";
    const Allocator& allocator = FindAllocator(rule.allocator);
    if (allocator.enabled != nullptr && config.*allocator.enabled == Switch::kOff)
      report(key, "assigns devices to \"" + rule.allocator + "\", which is disabled (" +
                      EnabledKey(allocator) + ")");
  }
}

void CheckNodeName(const std::string& name, const ReportProblem& report) {
  const bool printable =
      std::ranges::all_of(name, [](unsigned char c) { return std::isgraph(c) != 0 && c != '/'; });
  if (!printable || name.size() > 253)
    report("node.name",
           (printable ? "\"" + name + "\"" : std::string("this")) +
               " is not a node name: at most 253 visible characters without spaces and slashes");
}

bool OnlyOf(std::string_view text, std::string_view others) {
  return std::ranges::all_of(text, [others](unsigned char c) {
    return (c < 0x80 && std::isalnum(c) != 0) ||
           others.find(static_cast<char>(c)) != std::string_view::npos;
  });
}

bool EndsWell(std::string_view text) {
  return OnlyOf(text.substr(0, 1), "") && OnlyOf(text.substr(text.size() - 1), "");
}

void CheckNamespace(std::string_view key, const std::string& name, const ReportProblem& report) {
  if (!name.empty() && !IsObjectName(name, false))
    report(key, "\"" + name + "\" is not a namespace name");
}

void CheckPathsOfVendors(std::string_view key, const ByVendor& paths, const AbsolutePath& form,
                         const ReportProblem& report) {
  for (const auto& [vendor, path] : paths)
    if (const std::string problem = form.Problem(path); !problem.empty())
      report(std::string(key) + "." + vendor, problem);
}

void CheckCluster(const NodeConfig& config, const ReportProblem& report) {
  CheckNamespace("cluster.namespace", config.cluster.namespace_name, report);
  const ConfigMapConfig& map = config.cluster.config_map;
  if (!map.name.empty() && !IsObjectName(map.name, true))
    report("cluster.config.configMap", "\"" + map.name + "\" is not a ConfigMap name");
  CheckNamespace("cluster.config.namespace", map.namespace_name, report);
  if (map.default_key.size() > 253 || !OnlyOf(map.default_key, "-_."))
    report("cluster.config.default", "\"" + map.default_key + "\" cannot be a key of a ConfigMap");
  if (!map.node_label.empty() && !IsLabelKey(map.node_label))
    report("cluster.config.nodeLabel", "\"" + map.node_label + "\" is not a label key");
}

}  // namespace

bool IsObjectName(std::string_view name, bool dots) {
  return !name.empty() && name.size() <= (dots ? 253u : 63u) && name == base::ToLower(name) &&
         OnlyOf(name, dots ? "-." : "-") && EndsWell(name);
}

void Check(const NodeConfig& config, const ReportProblem& report) {
  for (const ConfigKey& key : ConfigKeys())
    if (const std::string problem = key.problem(config); !problem.empty())
      report(key.path, problem);
  CheckSocketPath(config.paths.run_dir, std::string_view("/penstock.sock").size(), "the socket",
                  "paths.runDir", report);
  if (config.kubelet_allocator != Switch::kOff)
    CheckSocketPath(config.paths.kubelet_dir,
                    std::string_view("/device-plugins/").size() + kPluginSocketName,
                    "a device plugin's socket", "paths.kubeletDir", report);
  CheckPathsOfVendors("paths.libraries", config.paths.libraries, AbsolutePath(), report);
  CheckPathsOfVendors("sharing.serverRoots", config.sharing.server_roots, AbsolutePath(false),
                      report);
  CheckPathsOfVendors("sharing.hostServerRoots", config.sharing.host_server_roots, AbsolutePath(),
                      report);
  CheckAllocators(config, report);
  const HealthConfig& health = config.health;
  if (health.probation > health.probation_most)
    report("health.probationMost", "is " + base::FormatDuration(health.probation_most) +
                                       ", less than health.probation (" +
                                       base::FormatDuration(health.probation) +
                                       "), its initial value; raise this one or lower the other");
  CheckSharing(config, report);
  CheckContainers(config, report);
  CheckNodeName(config.node_name, report);
  CheckTelemetry(config, report);
  CheckCluster(config, report);
}

}  // namespace penstock::api::internal

namespace penstock::api {

base::Status Validate(const NodeConfig& config) {
  std::vector<std::string> problems;
  internal::Check(config, [&problems](std::string_view key, const std::string& message) {
    std::string name(key);
    for (const PathOption& option : PathOptions())
      if (key == "paths." + std::string(option.key)) name += " (" + std::string(option.flag) + ")";
    if (key == "node.name") name += " (--node-name)";
    if (key == "http.listen") name += " (--listen)";
    problems.push_back(name + ": " + message);
  });
  if (problems.empty()) return {};
  return base::Error(base::Code::kInvalidArgument, base::Join(problems, "\n"));
}

}  // namespace penstock::api
