#include "adapter/cluster/former_writes.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "adapter/cluster/node_state_object.h"
#include "api/labels.h"
#include "base/lifetime.h"
#include "protocol/kube/node_fields.h"
#include "protocol/kube/status_error.h"

namespace penstock::adapter::cluster {

using protocol::kube::ApiCall;
using protocol::kube::ApiResponse;
using protocol::kube::Json;

namespace {

/// One thing that an agent wrote under a field manager of its own.
struct FormerWrite {
  std::string what;  // as problems name it
  std::string_view manager, subresource;
  ApiCall read;
  std::function<ApiCall(const std::string& uid)> removal;
  std::string stays;     // for people: that it does, and what removes it
  bool settled = false;  // there is nothing to do any more
};

std::string UidIn(const Json& object) {
  const Json::json_pointer uid("/metadata/uid");
  return object.contains(uid) && object[uid].is_string() ? object[uid].get<std::string>() : "";
}

FormerWrite FeatureOf(const std::string& node, const std::string& namespace_name) {
  return {.what = "former NodeFeature",
          .manager = kObjectsManager,
          .read = protocol::kube::Get(NodeFeatures(), namespace_name, NodeFeatureName(node)),
          .removal =
              [node, namespace_name](const std::string& uid) {
                return protocol::kube::Delete(NodeFeatures(), namespace_name, NodeFeatureName(node),
                                              uid);
              },
          .stays =
              "labels.nodeFeature is off, and the NodeFeature that the agent wrote before "
              "stays; " +
              FeatureDeletion(node, namespace_name) + " removes it"};
}

FormerWrite ConditionOf(const std::string& node) {
  const std::string type(kReadyCondition);
  return {.what = "former condition",
          .manager = kConditionManager,
          .subresource = "status",
          .read = protocol::kube::Get({"", "v1", "nodes"}, "", node),
          .removal =
              [node](const std::string& uid) {
                return protocol::kube::Patch({"", "v1", "nodes"}, "", node,
                                             protocol::kube::kStrategicMergePatch,
                                             protocol::kube::WithoutCondition(kReadyCondition, uid),
                                             kConditionManager, "status");
              },
          .stays = "cluster.readyCondition is off, and the condition " + type +
                   " that the agent wrote before stays; `kubectl patch node " + node +
                   R"( --subresource=status --patch '{"status":{"conditions":)" +
                   R"([{"$patch":"delete","type":")" + type + R"("}]}}'` removes it)"};
}

}  // namespace

std::string FeatureDeletion(const std::string& node, const std::string& namespace_name) {
  return "`kubectl -n " + namespace_name + " delete nodefeature " + NodeFeatureName(node) + "`";
}

struct FormerWrites::State : std::enable_shared_from_this<State> {
  State(protocol::kube::Api& a, const std::string& node, const std::string& namespace_name,
        Report r)
      : api(a),
        report(std::move(r)),
        feature(FeatureOf(node, namespace_name)),
        condition(ConditionOf(node)) {}

  void TakeBack(FormerWrite& former, bool may_be_there, const Done& done) {
    if (!may_be_there) report(former.what, {});
    if (!may_be_there || former.settled) return done({});
    api.Do(
        former.read,
        base::IfAlive(this, [&former, done](State& self, const base::Result<ApiResponse>& answer) {
          const auto object = protocol::kube::Parse(answer);
          if (object.ok() &&
              protocol::kube::IsManagedBy(*object, former.manager, former.subresource))
            return self.Remove(former, UidIn(*object), done);
          // What may not be read is not known to be ours.
          const bool is_none = object.ok() || object.error().code() == Code::kNotFound ||
                               object.error().code() == Code::kPermissionDenied;
          if (!is_none) return done(object.error());
          former.settled = true;
          done({});
        }));
  }

  void Remove(FormerWrite& former, const std::string& uid, const Done& done) {
    api.Do(
        former.removal(uid),
        base::IfAlive(this, [&former, done](State& self, const base::Result<ApiResponse>& answer) {
          const bool is_refused = !answer.ok() && answer.error().code() == Code::kPermissionDenied;
          if (!answer.ok() && !is_refused && !protocol::kube::IsOfAnother(answer.error()))
            return done(answer.error());
          former.settled = true;
          if (is_refused)
            self.report(former.what, {former.stays + ": " + answer.error().message(), true});
          done({});
        }));
  }

  protocol::kube::Api& api;
  const Report report;
  FormerWrite feature, condition;
};

FormerWrites::FormerWrites(protocol::kube::Api& api, const std::string& node,
                           const std::string& namespace_name, Report report)
    : state_(std::make_shared<State>(api, node, namespace_name, std::move(report))) {}

FormerWrites::~FormerWrites() = default;

/// NFD has labels of the object, if there is one, and of no other of its own under these names.
void FormerWrites::TakeFeatureBack(const ObservedNode& node, const Done& done) {
  const bool may_be_there = std::ranges::any_of(
      node.nfd, [](const std::string& key) { return !key.starts_with(api::kFeaturePrefix); });
  state_->TakeBack(state_->feature, may_be_there, done);
}

void FormerWrites::TakeConditionBack(const ObservedNode& node, const Done& done) {
  state_->TakeBack(state_->condition, node.ready.has_value(), done);
}

}  // namespace penstock::adapter::cluster
