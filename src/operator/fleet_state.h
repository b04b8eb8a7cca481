// Counts the states of the cluster's nodes, from what their agents report. Pure.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/cluster/penstock.h"
#include "api/compat/nvidia/driver_names.h"
#include "base/core/clock.h"

namespace penstock::cluster {

/// What is kept of a NodeState: its name, its conditions Ready and AcceleratorsReady as `ready` and
/// `validation`, `nextKernel`, `held` where devices are, and of each vendor `vendor`, `driver`,
/// `driverSource` and `driverSince`.
nlohmann::json ReducedNodeState(const nlohmann::json& node_state);

/// The driver of a node, as its agent reports it. Whoever may write NodeStates may write anything
/// there.
struct NodeDriver {
  bool looked = false;  ///< the agent has looked for a driver: where it found none, the rest is
                        ///< empty
  std::string version;
  std::string source;  ///< "host", "container"
  std::string since;  ///< RFC 3339, whole seconds: when the agent first opened this driver, in this
                      ///< place and this load of its module
};
NodeDriver DriverOnNode(const nlohmann::json& reduced_state,
                        std::string_view vendor = api::compat::kDriverVendor);

/// Whether the agent has looked for a driver, and there is none.
bool LacksDriver(const nlohmann::json& reduced_state);

/// What to do where the host's own driver, for which a node has none of ours, is not there.
/// `has_containers`: other nodes get drivers as containers.
std::string WhatToDoAboutHostDriver(bool has_containers);

/// The reason of a node without an agent that is ready.
inline constexpr std::string_view kAgentNotReady = "AgentNotReady";

/// A node with devices.
struct NodeReadiness {
  std::string name;
  std::string state;    ///< "ready", "notReady", "waiting" (no report yet), "optedOut"
  std::string reason;   ///< of the report's condition Ready, else of AcceleratorsReady;
                        ///< kAgentNotReady
  std::string message;  ///< cut to a length for people
  std::string since;
};
/// A node is ready if something can be allocated there and no step of its validation fails or
/// waits. `why_no_agent`: why no agent of it is ready (PodTroubles::WhyNone); what it reported
/// last says nothing then.
NodeReadiness ReadinessOf(const std::string& node, bool opted_out,
                          const nlohmann::json* reduced_state, const api::PenstockSpec& spec,
                          const std::string& why_no_agent = "");

/// At most so many nodes are named in a status.
inline constexpr std::size_t kMostNamed = 20;

struct FleetState {
  std::size_t nodes = 0;                         ///< with devices
  std::map<std::string, std::size_t> by_state;   ///< "ready" → number
  std::map<std::string, std::size_t> by_reason;  ///< of those that are not ready
  std::vector<NodeReadiness> named;              ///< of those that are not ready, the first by name
  std::size_t NotReady() const;
};
FleetState Count(std::vector<NodeReadiness> nodes);

/// The nodes with devices of one vendor, as their agents report them.
struct VendorNodes {
  FleetState fleet;
  std::size_t agents = 0;   ///< whose agents are ready
  std::size_t drivers = 0;  ///< whose devices have a driver
};

/// Of the agents' DaemonSet.
struct AgentsState {
  bool exists = false;
  bool current = false;  ///< all pods are of the current template, and the controller has seen it
  std::int64_t desired = 0, ready = 0, updated = 0;
  std::vector<std::string> troubles;  ///< why pods are not ready: "n2: agent: Error"
  bool complete() const { return exists && current && ready >= desired && updated >= desired; }
};
AgentsState AgentsOf(const nlohmann::json* daemon_set);

/// What is waited for, in addition to a minute, for each pod of a DaemonSet that begins or ends:
/// the controllers of a large cluster take that long (kube-controller-manager, 20 requests a
/// second, and both at once).
inline constexpr base::Duration kPodTakes = std::chrono::milliseconds(100);

}  // namespace penstock::cluster
