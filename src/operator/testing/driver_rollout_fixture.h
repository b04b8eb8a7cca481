// Plays the DaemonSets' controller, the kubelets and the agents of three nodes against a fake API
// server, for tests of roll-outs of drivers.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/testing/manual_executor.h"
#include "operator/driver/driver_daemon_set.h"
#include "operator/json_values.h"
#include "operator/operator.h"
#include "operator/testing/definitions.h"
#include "protocol/kube/fake/fake_api.h"

namespace penstock::cluster {

using namespace std::chrono_literals;
using nlohmann::json;
using protocol::kube::ApiCall;
using protocol::kube::FakeApi;

inline constexpr char kDriverPath[] = "/apis/nvidia.com/v1alpha1/nvidiadrivers/";
inline constexpr char kPolicyPath[] = "/apis/nvidia.com/v1/clusterpolicies/cluster-policy";
inline constexpr char kSets[] = "/apis/apps/v1/namespaces/gpu-operator/daemonsets/";
inline constexpr char kPods[] = "/api/v1/namespaces/gpu-operator/pods/";
inline constexpr char kPoolKey[] = "penstock.io/driver-pool";
inline constexpr char kStateKey[] = "nvidia.com/gpu-driver-upgrade-state";

class DriverRolloutTest : public testing::Test {
 protected:
  DriverRolloutTest() {
    for (const std::string& name : nodes_) {
      api_.Put(NodePath(name),
               {{"kind", "Node"},
                {"metadata",
                 {{"labels",
                   {{"feature.node.kubernetes.io/pci-10de.present", "true"},
                    {"feature.node.kubernetes.io/system-os_release.ID", "ubuntu"},
                    {"feature.node.kubernetes.io/system-os_release.VERSION_ID", "22.04"},
                    {"team", "blue"}}}}},
                {"status", {{"conditions", {{{"type", "Ready"}, {"status", "True"}}}}}}});
      Report(name, "");
    }
    api_.Put("/api/v1/namespaces/gpu-operator", {{"kind", "Namespace"}});
    api_.Put(kPolicyPath, {{"apiVersion", "nvidia.com/v1"},
                           {"kind", "ClusterPolicy"},
                           {"spec", {{"driver", {{"useNvidiaDriverCRD", true}}}}}});
    PutDriver("blue", "550.1");
    Start();
  }

  static std::string NodePath(const std::string& name) { return "/api/v1/nodes/" + name; }

  void PutDriver(const std::string& name, const std::string& version, json more = json::object()) {
    json spec = {{"default", false},
                 {"driverType", "gpu"},
                 {"nodeSelector", {{"team", name}}},
                 {"repository", "nvcr.io/nvidia"},
                 {"image", "driver"},
                 {"version", version},
                 {"upgradePolicy", {{"autoUpgrade", true}}}};
    spec.update(more);
    api_.Put(kDriverPath + name, {{"apiVersion", "nvidia.com/v1alpha1"},
                                  {"kind", "NVIDIADriver"},
                                  {"spec", std::move(spec)}});
  }

  void Start() { Start(api_); }
  /// `api`: leads to api_.
  void Start(protocol::kube::Api& api) {
    operator_.reset();
    operator_ = std::make_unique<Operator>(
        api, Operator::Options{.installation = {.namespace_name = "gpu-operator",
                                                .image = "localhost/penstock:1"},
                               .host = "pod-1"});
    operator_->Start();
    executor_.Advance(1s);
    Establish(api_);
    executor_.Advance(1s);
  }

  /// By the clock of the node.
  std::string TimeOn(const std::string& node) {
    const auto ahead = ahead_.find(node);
    return base::FormatTime(executor_.clock().Wall() +
                            (ahead == ahead_.end() ? base::WallTime::duration(0) : ahead->second));
  }

  /// What the node's agent finds.
  void Report(const std::string& node, const std::string& version) {
    json vendor = {{"vendor", "nvidia"}};
    if (!version.empty())
      vendor.update(
          {{"driver", version}, {"driverSource", "container"}, {"driverSince", TimeOn(node)}});
    api_.Put("/apis/penstock.io/v1alpha1/nodestates/" + node,
             {{"kind", "NodeState"},
              {"status",
               {{"vendors", json::array({vendor})},
                {"conditions",
                 {{{"type", "Ready"},
                   {"status", version.empty() ? "False" : "True"},
                   {"reason", version.empty() ? "NoDriver" : "Ready"},
                   {"lastTransitionTime", TimeOn(node)},
                   {"message", version.empty() ? "no driver" : ""}}}}}}});
  }

  /// By a budget, until Heal().
  void RefuseEvictionOf(const std::string& pod) {
    api_.Fail({.status = 429,
               .times = -1,
               .method = "POST",
               .path = "/api/v1/namespaces/team/pods/" + pod + "/eviction",
               .reason = "TooManyRequests"});
  }

  std::string LabelOf(const std::string& node, const char* key) {
    const json* found = api_.Find(NodePath(node));
    return found == nullptr ? "" : (*found)["metadata"]["labels"].value(key, "");
  }
  bool IsCordoned(const std::string& node) {
    const json* found = api_.Find(NodePath(node));
    return found != nullptr && Find(*found, "/spec/unschedulable") != nullptr;
  }
  std::string DriverPodPath(const std::string& node) { return kPods + ("driver-" + node); }

  /// A DaemonSet's controller and the kubelet of one node.
  void RunNode(const std::string& node) {
    if (stuck_.contains(node)) return;
    const std::string path = DriverPodPath(node), held = LabelOf(node, "penstock.io/driver-held");
    std::string name = LabelOf(node, kPoolKey);
    if (!held.empty()) name = name.substr(0, 52) + "-" + held.substr(0, 10);
    const json* set = api_.Find(kSets + name);
    if (set == nullptr) return api_.Find(path) == nullptr ? void() : api_.Remove(path);
    const json pod_template = (*set)["spec"]["template"];
    if (const json* pod = api_.Find(path)) {
      const json& labels = (*pod)["metadata"]["labels"];
      if (labels.value(kPoolKey, "") == LabelOf(node, kPoolKey) &&
          labels.value("penstock.io/driver-held", "") == held)
        return;
      api_.Remove(path);
    }
    const std::string image = TextAt(pod_template, "/spec/containers/0/image");
    const bool works = image.find("bad") == std::string::npos;
    const std::string now = TimeOn(node);
    json pod = {
        {"kind", "Pod"}, {"metadata", pod_template["metadata"]}, {"spec", pod_template["spec"]}};
    pod["spec"]["nodeName"] = node;
    pod["status"] = {
        {"phase", "Running"},
        {"conditions",
         {{{"type", "Ready"}, {"status", works ? "True" : "False"}, {"lastTransitionTime", now}}}},
        {"containerStatuses",
         {{{"name", "nvidia-driver-ctr"},
           {"ready", works},
           {"restartCount", works ? 0 : 11},
           {"state", {{"running", {{"startedAt", now}}}}},
           {"lastState", {{"terminated", {{"exitCode", 1}, {"reason", "Error"}}}}}}}}};
    api_.Put(path, pod);
    if (works && !keeps_driver_.contains(node)) Report(node, image.substr(image.rfind(':') + 1));
    loaded_[node].push_back(image);
  }

  void Run(int turns = 80, base::Duration step = 300ms) {
    for (int turn = 0; turn < turns; ++turn) {
      for (const std::string& node : nodes_) RunNode(node);
      executor_.Advance(step);
      std::size_t cordoned = 0;
      for (const std::string& node : nodes_)
        cordoned += IsCordoned(node) && LabelOf(node, kStateKey) != "upgrade-failed" ? 1 : 0;
      ASSERT_LE(cordoned, 1u) << "maxParallelUpgrades is 1";
      for (const std::string& node : nodes_) {
        auto& seen = states_[node];
        const std::string state = LabelOf(node, kStateKey);
        if (seen.empty() || seen.back() != state) seen.push_back(state);
      }
    }
  }

  void RunPod(const std::string& node, const std::string& name, bool gpu) {
    json container = {{"name", "c"}};
    if (gpu) container["resources"] = {{"limits", {{"nvidia.com/gpu", "1"}}}};
    api_.Put(
        "/api/v1/namespaces/team/pods/" + name,
        {{"kind", "Pod"},
         {"metadata",
          {{"ownerReferences", {{{"kind", "ReplicaSet"}, {"name", "r"}, {"controller", true}}}}}},
         {"spec", {{"nodeName", node}, {"containers", {container}}}},
         {"status", {{"phase", "Running"}}}});
  }

  std::vector<std::string> Deeds() {
    std::vector<std::string> deeds;
    for (const ApiCall& call : api_.calls())
      if (call.path.find("/pods/") != std::string::npos && call.method != "GET")
        deeds.push_back(call.method + " " + call.path);
    return deeds;
  }

  void SetReady(const std::string& node, const std::string& status) {
    api_.Merge(
        NodePath(node),
        {{"status",
          {{"conditions",
            {{{"type", "Ready"}, {"status", status}, {"lastTransitionTime", TimeOn(node)}}}}}}});
  }

  json DriverStatus(const std::string& name = "blue") {
    return api_.Find(kDriverPath + name)->value("status", json::object());
  }
  static std::string ConditionText(const json& status, const std::string& type, const char* key) {
    for (const json& one : status.value("conditions", json::array()))
      if (one["type"] == type) return one.value(key, "");
    return "";
  }

  const std::vector<std::string> nodes_ = {"n1", "n2", "n3"};
  base::ManualExecutor executor_;
  FakeApi api_{executor_};
  std::unique_ptr<Operator> operator_;
  std::map<std::string, std::vector<std::string>> loaded_, states_;
  std::set<std::string> stuck_;         ///< nodes whose controller or kubelet does nothing
  std::set<std::string> keeps_driver_;  ///< nodes whose pods find a driver loaded, and keep it
  std::map<std::string, base::WallTime::duration> ahead_;  ///< their clocks
};

}  // namespace penstock::cluster
