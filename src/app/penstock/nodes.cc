// Nodes joined with reports, counted and printed.
#include "app/penstock/nodes.h"

#include <algorithm>
#include <functional>

#include <nlohmann/json.hpp>

#include "api/node_state.h"
#include "app/penstock/cluster.h"
#include "app/penstock/show.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"

namespace penstock::app {

namespace {

/// The extended resources of capacity or allocatable: names with a domain, which kubernetes.io's own are not.
std::map<std::string, std::int64_t> ExtendedResources(const Json& node, std::string_view list) {
  std::map<std::string, std::int64_t> resources;
  for (const auto& [name, quantity] : TextsAt(node, {"status", list})) {
    const auto slash = name.find('/');
    if (slash == std::string::npos || name.substr(0, slash).ends_with("kubernetes.io")) continue;
    if (const auto amount = base::ParseInt(quantity)) {
      resources[name] = *amount;
    } else if (const auto large = base::ParseBytes(quantity); large.ok()) {  // "1k"
      resources[name] = static_cast<std::int64_t>(large->count);
    }
  }
  return resources;
}

bool IsReady(const Json& object) {
  const Json& conditions = At(object, {"status", "conditions"});
  return conditions.is_array() && std::any_of(conditions.begin(), conditions.end(), [](const Json& condition) {
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

/// When somebody last changed an object.
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
  AgentPod agent{TextAt(pod, {"metadata", "name"}), TextAt(pod, {"metadata", "namespace"}), IsReady(pod), TextAt(pod, {"status", "phase"})};
  const Json& containers = At(pod, {"status", "containerStatuses"});
  if (containers.is_array())
    for (const Json& container : containers)
      if (const std::string waiting = TextAt(container, {"state", "waiting", "reason"}); !waiting.empty()) agent.state = waiting;
  return agent;
}

std::string DriverOf(const api::Report& report) {
  std::vector<std::string> drivers;
  for (const api::VendorReport& vendor : report.vendors)
    if (!vendor.driver.empty()) drivers.push_back(vendor.driver);
  return drivers.empty() ? "none" : base::Join(drivers, ",");
}

std::string ModelsOf(const api::Report& report) {
  std::map<std::string, int> counts;
  for (const api::DeviceReport& device : report.devices) ++counts[device.model];
  std::vector<std::string> models;
  for (const auto& [model, count] : counts) models.push_back(std::to_string(count) + " " + model);
  return base::Join(models, ", ");
}

/// "kubelet:open local:open": the doors that there are; those that are switched off say nothing.
std::string DoorsOf(const api::Report& report, bool wide) {
  std::vector<std::string> doors;
  for (const api::DoorReport& door : report.doors)
    if (wide || door.name == "kubelet" || door.state == "waiting" || door.state == "stepped-back")
      doors.push_back(door.name + ":" + door.state);
  return base::Join(doors, " ");
}

/// "any (ConfigMap gpu/cfg)" in full; in a row the key or the file's name is enough.
std::string ConfigurationOf(const api::Report& report, bool wide) {
  const std::string& origin = report.configuration.origin;
  if (wide) return origin;
  if (const auto key = origin.find(", key "); key != std::string::npos) {
    const std::string rest = origin.substr(key + 6);
    return "key " + rest.substr(0, rest.find(' '));
  }
  return origin.starts_with("file ") ? "file" : origin;
}

std::string AllocatableOf(const NodeView& node) {
  std::vector<std::string> resources;
  for (const auto& [name, capacity] : node.capacity) {
    const auto allocatable = node.allocatable.find(name);
    if (capacity == 0) continue;  // what an earlier plugin left
    resources.push_back(name + " " + std::to_string(allocatable == node.allocatable.end() ? 0 : allocatable->second) + "/" +
                        std::to_string(capacity));
  }
  return base::Join(resources, ", ");
}

std::string SharesOf(const DeviceCounts& counts) {
  return counts.shares == 0 ? "" : std::to_string(counts.free_shares) + "/" + std::to_string(counts.shares) + " free";
}

const AgentPod* FailingAgent(const NodeView& node) {
  const auto failing = std::find_if(node.agents.begin(), node.agents.end(), [](const AgentPod& agent) { return !agent.ready; });
  const bool one_is_ready = std::any_of(node.agents.begin(), node.agents.end(), [](const AgentPod& agent) { return agent.ready; });
  return failing == node.agents.end() || one_is_ready ? nullptr : &*failing;
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
    problems.push_back(std::to_string(outside) + " in use by processes that nobody gave them to");
}

}  // namespace

std::vector<NodeView> JoinNodes(const std::vector<Json>& nodes, const std::vector<Json>& node_states, const std::vector<Json>& pods) {
  std::map<std::string, NodeView> views;
  const auto view_of = [&views](const std::string& name) -> NodeView& {
    NodeView& view = views[name];
    view.name = name;
    return view;
  };
  for (const Json& node : nodes) Describe(node, view_of(TextAt(node, {"metadata", "name"})));
  for (const Json& state : node_states) AddReport(state, view_of(TextAt(state, {"metadata", "name"})));
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
      return std::any_of(device.holders.begin(), device.holders.end(),
                         [outside](const api::HolderReport& holder) { return (holder.state == "outside") == outside; });
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
  if (!node.exists) return {"there is a report and no Node of this name"};
  if (!node.ready) problems.emplace_back("the node is not ready");
  if (const AgentPod* agent = FailingAgent(node)) problems.push_back("the agent's pod " + agent->name + " is " + agent->state);
  if (!node.unreadable.empty()) problems.push_back("its report cannot be read: " + node.unreadable);
  if (!node.report) {
    if (FailingAgent(node) == nullptr && node.unreadable.empty()) problems.emplace_back("no report: is the agent running there?");
    return problems;
  }
  for (const api::VendorReport& vendor : node.report->vendors)
    if (vendor.driver.empty()) problems.push_back("no " + vendor.vendor + " driver");
  AddDeviceProblems(*node.report, problems);
  for (const api::ServerReport& server : node.report->servers)
    if (server.state == "waiting")
      problems.push_back("the " + server.kind + " server of " + server.set + " is " + server.state +
                         (server.reason.empty() ? "" : ": " + server.reason));
  for (const api::DoorReport& door : node.report->doors)
    if (door.state == "stepped-back" || door.state == "waiting")
      problems.push_back("the " + door.name + "'s door is " + door.state + (door.reason.empty() ? "" : ": " + door.reason));
  if (!node.report->configuration.problem.empty())
    problems.push_back("configuration refused: " + base::Split(node.report->configuration.problem, '\n').front());
  if (const auto count = node.report->configuration.not_yet.size(); count > 0)
    problems.push_back(std::to_string(count) + (count == 1 ? " setting" : " settings") + " not yet to be had");
  return problems;
}

std::string ShowNodes(const std::vector<NodeView>& nodes, bool wide, const Style& style, base::WallTime now) {
  const bool shared = std::any_of(nodes.begin(), nodes.end(), [](const NodeView& node) {
    return node.report && std::any_of(node.report->devices.begin(), node.report->devices.end(), IsShared);
  });
  std::vector<std::string> header = {"NODE", "DRIVER", "HEALTHY", "HELD"};
  if (shared) header.emplace_back("SHARES");
  header.insert(header.end(), {"DOORS", "CONFIGURATION", "REPORTED"});
  if (wide) header.insert(header.end(), {"AGENT", "DEVICES", "ALLOCATABLE"});
  header.emplace_back("PROBLEM");
  Table table(header);
  for (const NodeView& node : nodes) {
    const DeviceCounts counts = node.report ? CountDevices(*node.report) : DeviceCounts{};
    const std::vector<std::string> problems = ProblemsOf(node);
    const bool unwell = !problems.empty();
    std::vector<Cell> row = {{node.name, unwell ? Color::kYellow : Color::kNone}};
    if (node.report) {
      row.insert(row.end(), {DriverOf(*node.report),
                             {std::to_string(counts.healthy) + "/" + std::to_string(counts.all),
                              counts.healthy == counts.all ? Color::kGreen : Color::kRed},
                             std::to_string(counts.held)});
      if (shared) row.emplace_back(SharesOf(counts));
      row.insert(row.end(), {DoorsOf(*node.report, wide), ConfigurationOf(*node.report, wide), AgeOf(node.reported_at, now)});
      if (wide) row.insert(row.end(), {node.report->version, ModelsOf(*node.report), AllocatableOf(node)});
    } else {
      row.insert(row.end(), shared ? 7 : 6, Cell(""));
      if (wide) row.insert(row.end(), {"", "", AllocatableOf(node)});
    }
    row.emplace_back(base::Join(problems, "; "), Color::kYellow);
    table.Add(std::move(row));
  }
  return table.empty() ? "the cluster has no nodes\n" : table.Render(style);
}

std::string NodesToJson(const std::vector<NodeView>& nodes) {
  Json list = Json::array();
  for (const NodeView& node : nodes) {
    Json one = {{"name", node.name},
                {"problems", ProblemsOf(node)},
                {"capacity", node.capacity},
                {"allocatable", node.allocatable},
                {"reportedAt", node.reported_at},
                {"report", nullptr}};
    if (node.report) {
      const DeviceCounts counts = CountDevices(*node.report);
      one["devices"] = {{"all", counts.all},         {"healthy", counts.healthy}, {"held", counts.held},
                        {"outside", counts.outside}, {"shares", counts.shares},   {"freeShares", counts.free_shares}};
      one["report"] = Json::parse(api::ToJson(*node.report));
    }
    list.push_back(std::move(one));
  }
  return Json{{"nodes", std::move(list)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace penstock::app
