// Fuzzes objects from an API server that other programs may have written: the Node, a ConfigMap,
// pods and the agent's NodeState. The input has one line per event, whose first letter is the kind:
// 'n' Node, 'm' ConfigMap, 'p' pod, 'a' a whole Node as the response to a read, 's' NodeState.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "../oracle.h"
#include "../scripted_api.h"
#include "adapter/cluster/configuration_watch.h"
#include "adapter/cluster/node_labels.h"
#include "adapter/cluster/node_state_object.h"
#include "adapter/cluster/pod_label_watch.h"
#include "base/core/strings.h"

namespace {

using namespace penstock;
using fuzz::Require;
using protocol::kube::Json;

constexpr std::string_view kWanted = "team*";

class Cluster {
 public:
  explicit Cluster(std::string_view input) : api_(input) {
    watch_.Start();
    pods_.Start();
    Settle();
  }

  void Take(char kind, std::string_view text) {
    if (kind == 'n') api_.Send("/api/v1/nodes", text);
    if (kind == 'm') api_.Send("/api/v1/namespaces/ns/configmaps", text);
    if (kind == 'p') api_.Send("/api/v1/pods", text);
    if (kind == 'a' || kind == 's') {
      const auto object =
          protocol::kube::Parse(protocol::kube::ApiResponse{200, std::string(text)});
      if (object.ok() && kind == 'a') watch_.Adopt(*object);
      if (object.ok() && kind == 's') CheckTimes(*object);
    }
    Settle();
    if (watch_.node() != nullptr) CheckNode(*watch_.node());
  }

 private:
  void Settle() {
    api_.executor().Advance(std::chrono::seconds(31));
  }  // longer than any back-off after a stream ends

  void CheckNode(const adapter::cluster::ObservedNode& node) {
    Require(node.name == "n1");
    if (!watch_.owners_known()) return;
    for (const std::string& key : node.own) Require(node.labels.contains(key));
    const adapter::cluster::NodeLabelSet wanted = {{"nvidia.com/gpu.count", "2"},
                                                   {"gfd.timestamp", "1"}};
    for (const bool carried : {false, true}) {
      const auto plan = labels_.Decide(node, wanted, carried, api_.executor().clock().Now());
      if (!plan.write) continue;
      for (const auto& [key, value] : plan.set)
        Require(wanted.contains(key) || node.own.contains(key));
      labels_.Wrote(plan.set, api_.executor().clock().Now());
    }
  }

  /// Only the times of an object that others may have changed are copied to the agent's own.
  static void CheckTimes(const Json& seen) {
    adapter::cluster::StartTimes times;
    times.Remember(seen);
    const Json own = {
        {"status",
         {{"devices",
           {{{"id", "G0"},
             {"health",
              {{"state", "healthy"}, {"reason", ""}, {"since", "2026-01-01T00:00:00Z"}}}}}},
          {"conditions",
           {{{"type", "Ready"},
             {"status", "True"},
             {"lastTransitionTime", "2026-01-01T00:00:00Z"}}}},
          {"configuration", {{"origin", "defaults"}, {"since", "2026-01-01T00:00:00Z"}}}}}};
    Json written = own;
    times.PutInto(written, true);
    for (const char* time :
         {"/status/devices/0/health/since", "/status/conditions/0/lastTransitionTime",
          "/status/configuration/since"}) {
      const Json::json_pointer at(time);
      Require(written.at(at).is_string());
      written.at(at) = own.at(at);
    }
    Require(written == own);
  }

  static void CheckConfig(const api::RemoteConfig& config) {
    Require(config.problem.empty() || config.text.empty());
  }

  static void CheckPods(const std::shared_ptr<const adapter::cluster::PodsOfNode>& pods) {
    Require(pods != nullptr);
    for (const auto& [name, facts] : *pods)
      for (const auto& [key, value] : facts.labels) Require(base::GlobMatch(kWanted, key));
  }

  fuzz::ScriptedApi api_;
  adapter::cluster::NodeLabelReconciler labels_;
  adapter::cluster::ConfigurationWatch watch_{
      api_,
      "n1",
      {.name = "config", .namespace_name = "ns"},
      {.node = [] {},
       .remote = CheckConfig,
       .problem = [](const std::string&, const protocol::kube::ReconcileLoop::Problem&) {}}};
  adapter::cluster::PodLabelWatch pods_{
      api_,
      "n1",
      {std::string(kWanted)},
      {.changed = CheckPods, .problem = [](const protocol::kube::ReconcileLoop::Problem&) {}}};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = fuzz::Text(data, size);
  Cluster cluster(input);
  for (const std::string& line : base::Split(input, '\n'))
    if (!line.empty()) cluster.Take(line.front(), std::string_view(line).substr(1));
  return 0;
}
