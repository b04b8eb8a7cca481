#include "operator/node_reports.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "api/compat/policy_kinds.h"
#include "operator/json_values.h"
#include "protocol/kube/informer.h"

namespace penstock::cluster {

using protocol::kube::Informer;

struct NodeReports::State {
  State(protocol::kube::Api& a, const NodeMarker& n, const PodTroubles& p, Callbacks c)
      : api(a), nodes(n), agents(p), callbacks(std::move(c)) {}

  void Start() {
    Informer::Options about;
    about.resource = {"penstock.io", "v1alpha1", "nodestates"};
    about.reduce = ReducedNodeState;
    reports.emplace(
        api, about,
        Informer::Handlers{.changed = [this](const Json& report) { OnReport(report); },
                           .removed = [this](const auto&, const auto& name) { OnNoReport(name); },
                           .synced = callbacks.synced,
                           .problem = callbacks.problem});
    reports->Start();
  }

  void OnReport(const Json& report) {
    const std::string node = TextAt(report, "/metadata/name");
    reporting.insert(node);
    for (const auto& kind : api::compat::PolicyKinds()) {
      if (kind.vendor.empty()) continue;
      if (DriverOnNode(report, kind.vendor).looked) {
        nodes_of[kind.vendor].insert(node);
      } else {
        nodes_of[kind.vendor].erase(node);
      }
    }
    callbacks.changed(node, &report);
  }

  void OnNoReport(const std::string& node) {
    reporting.erase(node);
    for (auto& [vendor, of_vendor] : nodes_of) of_vendor.erase(node);
    callbacks.changed(node, nullptr);
  }

  std::shared_ptr<const Json> Find(const std::string& node) const {
    return reports ? reports->Find("", node) : nullptr;
  }

  std::vector<NodeReadiness> Readiness(const std::vector<NodeMarker::DeviceNode>& of,
                                       const api::PenstockSpec& spec) const {
    std::vector<NodeReadiness> all;
    const std::map<std::string, std::string> why_none = agents.WhyNone();
    for (const NodeMarker::DeviceNode& node : of) {
      const auto none = why_none.find(node.name);
      const auto report = Find(node.name);
      all.push_back(ReadinessOf(node.name, node.opted_out, report.get(), spec,
                                none == why_none.end() ? "" : none->second));
      if (node.host_driver && report != nullptr && LacksDriver(*report))
        all.back().message +=
            (all.back().message.empty() ? "" : "; ") +
            WhatToDoAboutHostDriver(std::ranges::any_of(spec.drivers, &api::DriverSpec::enabled));
    }
    return all;
  }

  protocol::kube::Api& api;
  const NodeMarker& nodes;
  const PodTroubles& agents;
  const Callbacks callbacks;
  std::optional<Informer> reports;
  std::set<std::string> reporting;                        // nodes of which there is a report
  std::map<std::string, std::set<std::string>> nodes_of;  // those of a vendor's devices
};

NodeReports::NodeReports(protocol::kube::Api& api, const NodeMarker& nodes,
                         const PodTroubles& agents, Callbacks callbacks)
    : state_(std::make_shared<State>(api, nodes, agents, std::move(callbacks))) {}

NodeReports::~NodeReports() = default;

void NodeReports::Start() { state_->Start(); }
bool NodeReports::synced() const { return state_->reports && state_->reports->synced(); }
std::size_t NodeReports::size() const { return state_->reports ? state_->reports->size() : 0; }

const std::set<std::string>& NodeReports::nodes() const { return state_->reporting; }

bool NodeReports::has_devices() const {
  return std::ranges::any_of(state_->nodes_of, [](const auto& one) { return !one.second.empty(); });
}

std::vector<std::string> NodeReports::Holders() const {
  std::vector<std::string> names;
  for (const std::string& name : state_->reporting)
    if (const auto report = state_->Find(name); report && report->contains("held"))
      names.push_back(name);
  return names;
}

FleetState NodeReports::Labelled(const api::PenstockSpec& spec) const {
  return Count(state_->Readiness(state_->nodes.nodes(), spec));
}

FleetState NodeReports::All(const api::PenstockSpec& spec) const {
  std::vector<NodeMarker::DeviceNode> nodes = state_->nodes.nodes();
  std::set<std::string> names;
  for (const NodeMarker::DeviceNode& node : nodes) names.insert(node.name);
  for (const auto& [vendor, of_vendor] : state_->nodes_of)
    for (const std::string& name : of_vendor)
      if (auto node = state_->nodes.Find(name); node && names.insert(name).second)
        nodes.push_back(*std::move(node));
  return Count(state_->Readiness(nodes, spec));
}

/// A report without its node counts for nothing.
VendorNodes NodeReports::OfVendor(const std::string& vendor, const api::PenstockSpec& spec) const {
  std::vector<NodeMarker::DeviceNode> nodes;
  if (const auto found = state_->nodes_of.find(vendor); found != state_->nodes_of.end())
    for (const std::string& name : found->second)
      if (auto node = state_->nodes.Find(name)) nodes.push_back(*std::move(node));
  std::vector<NodeReadiness> readiness = state_->Readiness(nodes, spec);
  VendorNodes of_vendor;
  for (const NodeReadiness& node : readiness) {
    if (node.state == "optedOut" || node.reason == kAgentNotReady) continue;
    ++of_vendor.agents;
    const auto report = state_->Find(node.name);
    if (report != nullptr && !DriverOnNode(*report, vendor).version.empty()) ++of_vendor.drivers;
  }
  of_vendor.fleet = Count(std::move(readiness));
  return of_vendor;
}

std::set<std::string> NodeReports::Ready(const api::PenstockSpec& spec) const {
  std::set<std::string> ready, others = state_->reporting;
  for (NodeReadiness& node : state_->Readiness(state_->nodes.nodes(), spec)) {
    others.erase(node.name);
    if (node.state == "ready") ready.insert(std::move(node.name));
  }
  for (const std::string& name : others)
    if (ReadinessOf(name, false, state_->Find(name).get(), spec, "").state == "ready")
      ready.insert(name);
  return ready;
}

}  // namespace penstock::cluster
