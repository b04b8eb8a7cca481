// Explains the difference between the devices of a node and the numbers in the Node object.
#include "analysis/explain/explain.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "analysis/objects.h"
#include "api/allocators.h"
#include "api/compat/nvidia/driver_names.h"
#include "api/config/node_config.h"
#include "backend/all.h"
#include "backend/config_terms.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"

namespace penstock::analysis {

namespace {

using api::DeviceReport;
using api::Report;

bool IsBehind(const DeviceReport& device, const std::string& resource) {
  return api::FindAllocator(device.allocator).advertises && device.resource == resource;
}

bool Outside(const DeviceReport& device) {
  return std::ranges::any_of(device.holders,
                             [](const auto& holder) { return holder.state == "outside"; });
}

int Holders(const DeviceReport& device) {
  return static_cast<int>(std::ranges::count_if(
      device.holders, [](const auto& holder) { return holder.state != "outside"; }));
}

/// Whether the server behind the device is down: its slots are then unusable, whoever holds them.
bool ServerIsDown(const DeviceReport& device, const Report& report) {
  return std::ranges::any_of(report.servers, [&device](const api::ServerReport& server) {
    return server.state == "waiting" &&
           std::ranges::find(server.devices, device.id) != server.devices.end();
  });
}

/// The number of slots of a device that the kubelet may allocate or has allocated.
int Usable(const DeviceReport& device, const Report& report) {
  if (device.health_state != "healthy" || Outside(device) || ServerIsDown(device, report)) return 0;
  return std::min(device.shares, device.free + Holders(device));
}

ResourceView ViewOf(const std::string& name, const NodeView& node, const PodsView& pods) {
  const auto in = [&name](const auto& amounts) {
    const auto found = amounts.find(name);
    return found == amounts.end() ? 0 : found->second;
  };
  ResourceView view{.name = name,
                    .capacity = in(node.capacity),
                    .allocatable = in(node.allocatable),
                    .requested = in(pods.requested)};
  const api::AllocatorReport* allocator =
      node.report ? api::AdvertisingAllocator(*node.report) : nullptr;
  if (allocator == nullptr ||
      std::ranges::find(allocator->resources, name) == allocator->resources.end())
    return view;
  view.own = true;
  for (const DeviceReport& device : node.report->devices) {
    if (!IsBehind(device, name)) continue;
    view.offered += device.shares;
    view.usable += Usable(device, *node.report);
    view.held += std::min(device.shares, Holders(device));
  }
  return view;
}

std::string Indices(const std::vector<const DeviceReport*>& devices) {
  std::vector<std::string> indices;
  for (const DeviceReport* device : devices) {
    const std::string number = NumberOf(*device);
    indices.push_back(number.empty() ? device->id : number);
  }
  return (indices.size() == 1 ? "device " : "devices ") + base::Join(indices, ", ");
}

/// Devices with the same problem are reported together.
using Groups = std::map<std::string, std::vector<const DeviceReport*>>;

void AddUnhealthy(const Report& report, std::vector<ExplainFinding>& findings) {
  Groups groups;
  for (const DeviceReport& device : report.devices)
    if (device.health_state != "healthy")
      groups[device.health_state +
             (device.health_reason.empty() ? "" : ": " + device.health_reason)]
          .push_back(&device);
  for (const auto& [reason, devices] : groups) {
    const bool gone = devices.front()->health_state == "gone";
    const bool probation =
        std::ranges::all_of(devices,
                            [](const auto* one) { return !one->probation_until.empty(); }) ||
        reason.find("on probation") != std::string::npos;
    findings.push_back(
        {Indices(devices) + ": " + reason,
         gone ? "restore the device (power, slot, driver); it is then offered again automatically"
         : probation ? "wait: it is offered again automatically when the probation ends"
                     : "look up the reason in docs/operations.md; the device recovers "
                       "automatically once the driver reports it healthy"});
  }
}

/// Adds devices that fail repeatedly: their probation grows each time.
void AddRelapsed(const Report& report, std::vector<ExplainFinding>& findings) {
  constexpr int kMany = 3;
  std::vector<const DeviceReport*> devices;
  for (const DeviceReport& device : report.devices)
    if (device.relapses >= kMany) devices.push_back(&device);
  if (!devices.empty())
    findings.push_back({Indices(devices) + ": failed again soon after each recovery, " +
                            std::to_string(devices.front()->relapses) + " times" +
                            (devices.size() > 1 ? " approximately" : "") +
                            "; the probation grows each time",
                        "have the hardware inspected: accelerator_evidence_total on the node's "
                        "metrics page shows the evidence"});
}

void AddServers(const Report& report, std::vector<ExplainFinding>& findings) {
  for (const api::ServerReport& server : report.servers)
    if (server.state == "waiting")
      findings.push_back(
          {"the " + server.kind + " server of " + server.set + " is " + server.state +
               (server.reason.empty() ? "" : ": " + server.reason) +
               "; its shares are advertised as unhealthy",
           "the agent restarts it automatically; if this persists, see docs/operations.md"});
}

/// The steps that other findings do not explain.
void AddValidation(const Report& report, std::vector<ExplainFinding>& findings) {
  for (const api::ValidationStep& step : report.validation)
    if (step.state == "failed" && step.name != "driver" && step.name != "devices")
      findings.push_back(
          {"the step " + step.name + " of its validation failed: " + step.reason,
           step.remedy.empty() ? "`penstock validate --explain` on the node" : step.remedy});
}

/// The state of the upgrade of a node's driver; empty: none is under way, and none failed.
std::string UpgradeOf(const NodeView& node) {
  const auto label = node.labels.find(std::string(api::compat::kUpgradeStateLabel));
  return label == node.labels.end() || label->second == "upgrade-done" ? "" : label->second;
}

void AddNode(const NodeView& node, std::vector<ExplainFinding>& findings) {
  if (!node.exists)
    findings.push_back({"the cluster has a report but no Node of this name",
                        "kubectl delete nodestate " + node.name});
  if (node.exists && !node.ready)
    findings.push_back(
        {"the node is not ready", "kubectl describe node " + node.name + " says why"});
  const std::string upgrade = UpgradeOf(node);
  if (!upgrade.empty())
    findings.push_back({"the upgrade of its driver is in the state " + upgrade,
                        "`kubectl penstock policies NAME` says what it waits for"});
  if (node.cordoned)
    findings.push_back({"the node is cordoned: no new pod is put on it",
                        upgrade.empty() ? "kubectl uncordon " + node.name
                                        : "the upgrade uncordons it, if it cordoned it"});
}

void AddWithheld(const Report& report, std::vector<ExplainFinding>& findings) {
  Groups withheld, otherwise;
  std::vector<const DeviceReport*> outside, nowhere;
  for (const DeviceReport& device : report.devices) {
    if (!device.withheld.empty())
      (device.resource.empty() ? withheld : otherwise)[device.withheld].push_back(&device);
    if (Outside(device)) outside.push_back(&device);
    if (device.allocator.empty() && device.withheld.empty()) nowhere.push_back(&device);
  }
  for (const auto& [reason, devices] : withheld)
    findings.push_back({Indices(devices) + ": not offered: " + reason,
                        "fix this on the node; the device is then offered automatically"});
  for (const auto& [reason, devices] : otherwise)
    findings.push_back(
        {Indices(devices) + ": not offered as configured: " + reason,
         "fix this on the node; the device then follows the configuration automatically"});
  if (!outside.empty())
    findings.push_back({Indices(outside) + ": in use by outside processes (not allocated to them), "
                                           "so they are advertised as unhealthy",
                        "`penstock ps` on the node lists the processes; end them, or have their "
                        "owner use `penstock run`"});
  if (!nowhere.empty())
    findings.push_back(
        {Indices(nowhere) + ": the configuration assigns them to no allocator that is enabled",
         "see `allocators` in the agent's configuration"});
}

void AddAssign(const Report& report, std::vector<ExplainFinding>& findings) {
  const api::AllocatorReport* allocator = api::AdvertisingAllocator(report);
  if (allocator == nullptr || allocator->state == "open") return;
  const std::string what = "the allocator " + allocator->name + " is " + allocator->state +
                           (allocator->reason.empty() ? "" : ": " + allocator->reason);
  if (allocator->state == "stepped-back") {
    findings.push_back({what,
                        "remove the other device plugin from this node; Penstock then takes over "
                        "at once (see `kubectl penstock migrate`)"});
  } else if (allocator->state == "closed") {
    findings.push_back(
        {what, "make the kubelet's folder visible to the agent (paths.kubeletDir), or set " +
                   api::EnabledKey(api::FindAllocator(allocator->name)) + ": on"});
  } else {
    findings.push_back(
        {what, "check that the kubelet runs; the agent registers as soon as it answers"});
  }
}

void AddConfiguration(const NodeView& node, const std::string& choice,
                      std::vector<ExplainFinding>& findings) {
  const api::ConfigurationReport& config = node.report->configuration;
  if (!config.problem.empty())
    findings.push_back({"a newer configuration (" + config.problem_origin + ") is not in force: " +
                            base::Join(base::Split(config.problem, '\n'), "; "),
                        "fix it (`penstock config check FILE` reports the same problems); it is "
                        "applied as soon as it is valid"});
  for (const std::string& one : config.not_yet)
    findings.push_back({"not supported yet: " + one,
                        "no action needed; the rest of the configuration is in force"});
  for (const std::string& one : config.remarks)
    findings.push_back({"remark on the configuration: " + one,
                        "correct it if this is not intended (see `penstock config check FILE`)"});
  const std::string key = choice.empty() ? "" : choice.substr(choice.find('=') + 1);
  if (!key.empty() && config.problem.empty() &&
      (config.origin + " ").find(", key " + key + " ") == std::string::npos)
    findings.push_back(
        {"the label " + choice + " has no effect: " +
             (config.origin.empty() ? "nothing is configured" : config.origin + " is in force"),
         "set the chart's value config.name (or config.map) to the ConfigMap that has this key"});
}

void AddNumbers(const ResourceView& resource, const NodeView& node,
                std::vector<ExplainFinding>& findings) {
  if (!resource.own) {
    if (resource.capacity == 0)
      findings.push_back({resource.name + ": 0, left by a device plugin that was removed",
                          "no action needed: no pod can get it. The kubelet keeps the name until "
                          "it restarts with a Node object without it"});
    return;
  }
  const api::AllocatorReport* allocator = api::AdvertisingAllocator(*node.report);
  if (allocator == nullptr || allocator->state != "open") return;  // already reported
  if (resource.capacity != resource.offered || resource.allocatable != resource.usable)
    findings.push_back(
        {resource.name + ": the Node object says " + std::to_string(resource.allocatable) + " of " +
             std::to_string(resource.capacity) + ", the agent advertises " +
             std::to_string(resource.usable) + " of " + std::to_string(resource.offered),
         "wait 10 s, the kubelet's update interval; if this persists, check the kubelet's log, and "
         "check for another plugin of the same name"});
}

void AddAgent(const NodeView& node, bool kind_missing, std::vector<ExplainFinding>& findings) {
  for (const AgentPod& agent : node.agents)
    if (!agent.ready)
      findings.push_back({"the agent's pod " + agent.namespace_name + "/" + agent.name +
                              " is not ready: " + agent.state,
                          "kubectl -n " + agent.namespace_name + " logs " + agent.name});
  if (!node.unreadable.empty())
    findings.push_back({"its report cannot be read: " + node.unreadable,
                        "use the version of penstock that matches the agent"});
  if (node.report || !node.unreadable.empty()) return;
  if (kind_missing) {
    findings.push_back({"the cluster does not have the kind NodeState, so no agent can report",
                        "install the chart with penstock.nodeState.crd=true, or run `penstock "
                        "status` on the node"});
  } else if (node.agents.empty()) {
    findings.push_back(
        {"no report from this node, and no Penstock pod on it",
         "check that the DaemonSet's node selector, affinity and tolerations admit the node"});
  } else {
    findings.push_back(
        {"no report from this node",
         "kubectl -n " + node.agents.front().namespace_name + " logs " + node.agents.front().name});
  }
}

void AddWaiting(const Explanation& explanation, std::vector<ExplainFinding>& findings) {
  for (const ResourceView& resource : explanation.resources) {
    std::vector<std::string> pods;
    for (const WaitingPod& pod : explanation.pods.waiting)
      if (pod.resource == resource.name)
        pods.push_back(pod.namespace_name + "/" + pod.name + " (" + std::to_string(pod.amount) +
                       ")");
    const bool full = resource.own && resource.requested >= resource.allocatable;
    if (!pods.empty() && full)
      findings.push_back({resource.name + ": all " + std::to_string(resource.allocatable) +
                              " are allocated, and " + std::to_string(pods.size()) +
                              (pods.size() == 1 ? " pod waits" : " pods wait"),
                          "end a pod that holds one, or add a node"});
  }
}

}  // namespace

std::vector<std::string> ResourceNames(const NodeView& node) {
  std::set<std::string> names;
  const api::AllocatorReport* allocator =
      node.report ? api::AdvertisingAllocator(*node.report) : nullptr;
  if (allocator != nullptr) names.insert(allocator->resources.begin(), allocator->resources.end());
  // Nodes also have resources of other vendors (hugepages have no domain, network cards have one).
  // List the resources of the agent's domains only, including those with amount zero.
  std::set<std::string> domains;
  for (const device::Dialect* dialect : backend::Dialects())
    domains.emplace(dialect->resource().substr(0, dialect->resource().find('/')));
  for (const std::string& name : names) domains.insert(name.substr(0, name.find('/')));
  for (const auto& [name, amount] : node.capacity)
    if (domains.contains(name.substr(0, name.find('/')))) names.insert(name);
  return {names.begin(), names.end()};
}

Explanation Explain(NodeView node, PodsView pods, bool kind_missing) {
  Explanation explanation{.node = std::move(node), .pods = std::move(pods)};
  const NodeView& one = explanation.node;
  if (const auto label = one.labels.find(backend::ConfigTerms().node_label);
      label != one.labels.end())
    explanation.choice = label->first + "=" + label->second;
  for (const std::string& name : ResourceNames(one))
    explanation.resources.push_back(ViewOf(name, one, explanation.pods));
  std::vector<ExplainFinding>& findings = explanation.findings;
  AddNode(one, findings);
  AddAgent(one, kind_missing, findings);
  if (one.report) {
    for (const api::VendorReport& vendor : one.report->vendors)
      if (vendor.driver.empty())
        findings.push_back({"no " + vendor.vendor + " driver" +
                                (vendor.reason.empty() ? "" : ": " + vendor.reason),
                            "install it; the agent detects it without a restart"});
    AddValidation(*one.report, findings);
    AddAssign(*one.report, findings);
    AddUnhealthy(*one.report, findings);
    AddRelapsed(*one.report, findings);
    AddServers(*one.report, findings);
    AddWithheld(*one.report, findings);
    AddConfiguration(one, explanation.choice, findings);
  }
  for (const ResourceView& resource : explanation.resources) AddNumbers(resource, one, findings);
  AddWaiting(explanation, findings);
  return explanation;
}

}  // namespace penstock::analysis
