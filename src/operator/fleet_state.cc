#include "operator/fleet_state.h"

#include <algorithm>
#include <initializer_list>

#include "api/compat/policy_kinds.h"
#include "base/core/printable.h"
#include "operator/json_values.h"

namespace penstock::cluster {
namespace {

constexpr std::size_t kMostMessage = 400, kMostReason = 64, kMostReasons = 20, kMostVendors = 8;
constexpr std::string_view kOtherReason = "Other";
/// Of the agent's condition Ready where no allocator serves, which is normal where none is wanted.
constexpr std::string_view kNoAllocator = "NoDoorOpen";

std::int64_t NumberAt(const Json& object, const std::string& pointer) {
  const Json* found = Find(object, pointer);
  return found != nullptr && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

/// Short texts of one object.
Json Kept(const Json& object, std::initializer_list<const char*> keys) {
  Json kept = Json::object();
  for (const char* key : keys)
    if (const std::string text = TextAt(object, std::string("/") + key); !text.empty())
      kept[key] = base::Printable(text.substr(0, kMostReason));
  return kept;
}

/// Of one that is true only that it is.
Json KeptCondition(const Json& condition) {
  const std::string status = TextAt(condition, "/status");
  if (status == "True") return {{"status", status}};
  return {
      {"status", status},
      {"reason", base::Printable(TextAt(condition, "/reason").substr(0, kMostReason))},
      {"message", base::Printable(base::Shortened(TextAt(condition, "/message"), kMostMessage))},
      {"since", base::Printable(TextAt(condition, "/lastTransitionTime").substr(0, 32))}};
}

bool IsTrue(const Json& reduced_state, const std::string& condition) {
  return TextAt(reduced_state, "/" + condition + "/status") == "True";
}

/// Absent where the agent has not looked yet.
void AddVendors(const Json& node_state, Json& reduced) {
  const Json* vendors = Find(node_state, "/status/vendors");
  if (vendors == nullptr || !vendors->is_array()) return;
  for (const Json& vendor : *vendors) {
    if (TextAt(vendor, "/vendor").empty()) continue;
    if (reduced["vendors"].size() >= kMostVendors) return;
    reduced["vendors"].push_back(Kept(vendor, {"vendor", "driver", "driverSource", "driverSince"}));
  }
}

}  // namespace

Json ReducedNodeState(const Json& node_state) {
  Json reduced = {{"metadata", {{"name", TextAt(node_state, "/metadata/name")}}}};
  AddVendors(node_state, reduced);
  if (const std::string kernel = TextAt(node_state, "/status/nextKernel");
      !kernel.empty() && kernel.size() <= kMostReason)
    reduced["nextKernel"] = base::Printable(kernel);
  if (NumberAt(node_state, "/status/summary/held") > 0) reduced["held"] = true;
  for (const Json& condition : ListAt(node_state, "/status/conditions")) {
    const std::string type = TextAt(condition, "/type");
    if (type == "Ready") reduced["ready"] = KeptCondition(condition);
    if (type == "AcceleratorsReady") reduced["validation"] = KeptCondition(condition);
  }
  return reduced;
}

NodeDriver DriverOnNode(const Json& reduced_state, std::string_view vendor) {
  const Json* vendors = Find(reduced_state, "/vendors");
  if (vendors == nullptr || !vendors->is_array()) return {};
  for (const Json& one : *vendors) {
    if (TextAt(one, "/vendor") != vendor) continue;
    NodeDriver driver{.looked = true, .version = TextAt(one, "/driver"), .source = {}, .since = {}};
    if (driver.version.empty()) return driver;
    driver.source = TextAt(one, "/driverSource");
    driver.since = TextAt(one, "/driverSince");
    return driver;
  }
  return {};
}

std::string WhatToDoAboutHostDriver(bool has_containers) {
  const auto& [key, value] = api::compat::HostDriverMark();
  return "the node is labelled " + key + "=" + value + ": install the host's driver" +
         (has_containers ? ", or remove the label to get a container with one" : "");
}

bool LacksDriver(const Json& reduced_state) {
  const NodeDriver driver = DriverOnNode(reduced_state);
  return driver.looked && driver.version.empty();
}

NodeReadiness ReadinessOf(const std::string& node, bool opted_out, const Json* reduced_state,
                          const api::PenstockSpec& spec, const std::string& why_no_agent) {
  if (opted_out)
    return {node, "optedOut", "OptedOut", spec.marks.opt_out_label + "=false on this node", ""};
  if (reduced_state == nullptr || !reduced_state->contains("ready"))
    return {node, "waiting", "NoReport", "the node's agent has not reported yet", ""};
  const bool serves_nobody = spec.node.kubelet_allocator == api::Switch::kOff &&
                             TextAt(*reduced_state, "/ready/reason") == kNoAllocator;
  const bool offers = IsTrue(*reduced_state, "ready") || serves_nobody;
  const bool valid = !reduced_state->contains("validation") || IsTrue(*reduced_state, "validation");
  const std::string decides = offers ? "/validation" : "/ready";
  if (!why_no_agent.empty())
    return {node, "notReady", std::string(kAgentNotReady), why_no_agent, ""};
  if (offers && valid) return {node, "ready", "", "", ""};
  return {node, "notReady", TextAt(*reduced_state, decides + "/reason"),
          TextAt(*reduced_state, decides + "/message"), TextAt(*reduced_state, decides + "/since")};
}

std::size_t FleetState::NotReady() const {
  std::size_t count = 0;
  for (const auto& [state, number] : by_state)
    if (state != "ready" && state != "optedOut") count += number;
  return count;
}

FleetState Count(std::vector<NodeReadiness> nodes) {
  std::ranges::sort(nodes, {}, &NodeReadiness::name);
  FleetState fleet;
  fleet.nodes = nodes.size();
  for (NodeReadiness& node : nodes) {
    ++fleet.by_state[node.state];
    if (node.state == "ready") continue;
    // Reasons come from the nodes: a status must not grow with what they invent.
    const bool known =
        fleet.by_reason.contains(node.reason) || fleet.by_reason.size() < kMostReasons;
    ++fleet.by_reason[known ? node.reason : std::string(kOtherReason)];
    if (fleet.named.size() < kMostNamed && node.state != "optedOut")
      fleet.named.push_back(std::move(node));
  }
  return fleet;
}

AgentsState AgentsOf(const Json* daemon_set) {
  if (daemon_set == nullptr) return {};
  AgentsState agents{.exists = true};
  agents.current = NumberAt(*daemon_set, "/status/observedGeneration") >=
                   NumberAt(*daemon_set, "/metadata/generation");
  agents.desired = NumberAt(*daemon_set, "/status/desiredNumberScheduled");
  agents.ready = NumberAt(*daemon_set, "/status/numberReady");
  agents.updated = NumberAt(*daemon_set, "/status/updatedNumberScheduled");
  return agents;
}

}  // namespace penstock::cluster
