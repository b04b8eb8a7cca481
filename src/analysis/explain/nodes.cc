#include "analysis/explain/nodes.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "analysis/objects.h"
#include "api/node_state.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"

namespace penstock::analysis {

namespace {

/// The extended resources of capacity or allocatable: names with a domain other than kubernetes.io.
std::map<std::string, std::int64_t> ExtendedResources(const Json& node, std::string_view list) {
  std::map<std::string, std::int64_t> resources;
  for (const auto& [name, quantity] : TextsAt(node, {"status", list})) {
    const auto slash = name.find('/');
    if (slash == std::string::npos || name.substr(0, slash).ends_with("kubernetes.io")) continue;
    if (const auto amount = base::ParseInt(quantity)) {
      resources[name] = *amount;
    } else if (const auto large = base::ParseBytes(quantity); large.ok()) {  // e.g. "1k"
      resources[name] = static_cast<std::int64_t>(large->count);
    }
  }
  return resources;
}

bool IsReady(const Json& object) {
  const Json& conditions = At(object, {"status", "conditions"});
  return conditions.is_array() && std::ranges::any_of(conditions, [](const Json& condition) {
           return TextAt(condition, {"type"}) == "Ready" && TextAt(condition, {"status"}) == "True";
         });
}

void Describe(const Json& node, NodeView& view) {
  view.exists = true;
  view.ready = IsReady(node);
  const Json& unschedulable = At(node, {"spec", "unschedulable"});
  view.cordoned = unschedulable.is_boolean() && unschedulable.get<bool>();
  view.kubelet = TextAt(node, {"status", "nodeInfo", "kubeletVersion"});
  view.labels = TextsAt(node, {"metadata", "labels"});
  view.capacity = ExtendedResources(node, "capacity");
  view.allocatable = ExtendedResources(node, "allocatable");
}

/// The time of the last change of an object.
std::string ChangedAt(const Json& object) {
  std::string latest = TextAt(object, {"metadata", "creationTimestamp"});
  const Json& fields = At(object, {"metadata", "managedFields"});
  if (fields.is_array())
    for (const Json& entry : fields) latest = std::max(latest, TextAt(entry, {"time"}));
  return latest;
}

void AddReport(const Json& node_state, NodeView& view) {
  auto report = api::ReportOf(node_state);
  if (report.ok()) {
    view.report = *std::move(report);
  } else {
    view.unreadable = report.error().message();
  }
  view.reported_at = ChangedAt(node_state);
}

AgentPod AgentPodOf(const Json& pod) {
  AgentPod agent{TextAt(pod, {"metadata", "name"}), TextAt(pod, {"metadata", "namespace"}),
                 IsReady(pod), TextAt(pod, {"status", "phase"})};
  const Json& containers = At(pod, {"status", "containerStatuses"});
  if (containers.is_array())
    for (const Json& container : containers)
      if (const std::string waiting = TextAt(container, {"state", "waiting", "reason"});
          !waiting.empty())
        agent.state = waiting;
  return agent;
}

const AgentPod* FailingAgent(const NodeView& node) {
  const auto failing =
      std::ranges::find_if(node.agents, [](const AgentPod& agent) { return !agent.ready; });
  const bool one_is_ready =
      std::ranges::any_of(node.agents, [](const AgentPod& agent) { return agent.ready; });
  return failing == node.agents.end() || one_is_ready ? nullptr : &*failing;
}

void AddDriverProblems(const api::Report& report, std::vector<std::string>& problems) {
  for (const api::VendorReport& vendor : report.vendors)
    if (vendor.driver.empty()) problems.push_back("no " + vendor.vendor + " driver");
}

void AddFailedSteps(const api::Report& report, std::vector<std::string>& problems) {
  for (const api::ValidationStep& step : report.validation)
    if (step.state == "failed" && step.name != "driver" && step.name != "devices")
      problems.push_back("validation: " + step.name + " failed");
}

void AddDeviceProblems(const api::Report& report, std::vector<std::string>& problems) {
  std::map<std::string, int> states;
  int withheld = 0;
  for (const api::DeviceReport& device : report.devices) {
    if (device.health_state != "healthy") ++states[device.health_state];
    withheld += device.withheld.empty() || !device.resource.empty() ? 0 : 1;
  }
  for (const auto& [state, count] : states) problems.push_back(std::to_string(count) + " " + state);
  if (withheld > 0) problems.push_back(std::to_string(withheld) + " withheld");
  if (const int outside = CountDevices(report).outside; outside > 0)
    problems.push_back(std::to_string(outside) + " in use by outside processes");
}

/// Of sharing servers, allocators and the configuration.
void AddOtherProblems(const api::Report& report, std::vector<std::string>& problems) {
  for (const api::ServerReport& server : report.servers)
    if (server.state == "waiting")
      problems.push_back("the " + server.kind + " server of " + server.set + " is " + server.state +
                         (server.reason.empty() ? "" : ": " + server.reason));
  for (const api::AllocatorReport& allocator : report.allocators)
    if (allocator.state == "stepped-back" || allocator.state == "waiting")
      problems.push_back("the allocator " + allocator.name + " is " + allocator.state +
                         (allocator.reason.empty() ? "" : ": " + allocator.reason));
  if (!report.configuration.problem.empty())
    problems.push_back("configuration rejected: " +
                       base::Split(report.configuration.problem, '\n').front());
  if (const auto count = report.configuration.not_yet.size(); count > 0)
    problems.push_back(std::to_string(count) + (count == 1 ? " setting" : " settings") +
                       " not supported yet");
}

}  // namespace

std::vector<NodeView> JoinNodes(const std::vector<Json>& nodes,
                                const std::vector<Json>& node_states,
                                const std::vector<Json>& pods) {
  std::map<std::string, NodeView> views;
  const auto view_of = [&views](const std::string& name) -> NodeView& {
    NodeView& view = views[name];
    view.name = name;
    return view;
  };
  for (const Json& node : nodes) Describe(node, view_of(TextAt(node, {"metadata", "name"})));
  for (const Json& state : node_states)
    AddReport(state, view_of(TextAt(state, {"metadata", "name"})));
  for (const Json& pod : pods)
    if (const auto view = views.find(TextAt(pod, {"spec", "nodeName"})); view != views.end())
      view->second.agents.push_back(AgentPodOf(pod));
  std::vector<NodeView> sorted;
  for (auto& [name, view] : views)
    if (!name.empty()) sorted.push_back(std::move(view));
  return sorted;
}

DeviceCounts CountDevices(const api::Report& report) {
  DeviceCounts counts;
  for (const api::DeviceReport& device : report.devices) {
    const auto any = [&device](bool outside) {
      return std::ranges::any_of(device.holders, [outside](const api::HolderReport& holder) {
        return (holder.state == "outside") == outside;
      });
    };
    ++counts.all;
    counts.healthy += device.health_state == "healthy" ? 1 : 0;
    counts.held += any(false) ? 1 : 0;
    counts.outside += any(true) ? 1 : 0;
    if (!IsShared(device) || device.resource.empty()) continue;
    counts.shares += device.shares;
    counts.free_shares += device.free;
  }
  return counts;
}

std::vector<std::string> ProblemsOf(const NodeView& node) {
  std::vector<std::string> problems;
  if (!node.exists) return {"there is a report but no Node of this name"};
  if (!node.ready) problems.emplace_back("the node is not ready");
  if (const AgentPod* agent = FailingAgent(node))
    problems.push_back("the agent's pod " + agent->name + " is " + agent->state);
  if (!node.unreadable.empty()) problems.push_back("its report cannot be read: " + node.unreadable);
  if (!node.report) {
    if (FailingAgent(node) == nullptr && node.unreadable.empty())
      problems.emplace_back("no report: is the agent running there?");
    return problems;
  }
  AddDriverProblems(*node.report, problems);
  AddFailedSteps(*node.report, problems);
  AddDeviceProblems(*node.report, problems);
  AddOtherProblems(*node.report, problems);
  return problems;
}

std::vector<std::string> NodeProblemsOf(const api::Report& report) {
  std::vector<std::string> problems;
  AddDriverProblems(report, problems);
  AddFailedSteps(report, problems);
  AddOtherProblems(report, problems);
  return problems;
}

}  // namespace penstock::analysis
