// Finds what Penstock's field managers own by the objects' metadata.managedFields, and releases it.
#include <algorithm>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "app/penstock/cluster/cleanup.h"
#include "backend/all.h"
#include "base/core/strings.h"
#include "device/dialect.h"
#include "protocol/kube/node_fields.h"

namespace penstock::app {

using base::Code;
using base::Result;
using protocol::kube::Resource;

namespace {

constexpr std::string_view kManagers = "penstock";                // and names with this prefix
constexpr std::string_view kClientsManager = "penstock-clients";  // adapter/cluster
constexpr std::string_view kReadyCondition = "penstock.io/AcceleratorsReady";  // adapter/cluster
constexpr int kAttempts = 5;
constexpr base::Duration kPollInterval = std::chrono::milliseconds(500);

bool IsOwnManager(const std::string& manager) {
  return manager == kManagers || manager.starts_with(std::string(kManagers) + "-");
}

/// By the names of their managers, the applies of Penstock's to the object itself, not to a
/// subresource: entries of its managed fields.
std::map<std::string, Json> OurApplies(const Json& object) {
  std::map<std::string, Json> applies;
  const Json& fields = analysis::At(object, {"metadata", "managedFields"});
  if (fields.is_array())
    for (const Json& entry : fields)
      if (const std::string manager = analysis::TextAt(entry, {"manager"});
          IsOwnManager(manager) && analysis::TextAt(entry, {"operation"}) == "Apply" &&
          analysis::TextAt(entry, {"subresource"}).empty())
        applies.emplace(manager, entry);
  return applies;
}

std::set<std::string> KeysAt(const Json& object, std::string_view map) {
  std::set<std::string> keys;
  for (const auto& [key, value] : analysis::TextsAt(object, {"metadata", map})) keys.insert(key);
  return keys;
}

/// The keys that exist before and not after.
std::vector<std::string> Vanished(const Json& before, const Json& after, std::string_view map) {
  const auto had = KeysAt(before, map), has = KeysAt(after, map);
  std::vector<std::string> gone;
  std::set_difference(had.begin(), had.end(), has.begin(), has.end(), std::back_inserter(gone));
  return gone;
}

/// The labels that stop programs for a change of devices (adapter/cluster/client_labels.h), of an
/// agent that has not started these again.
std::map<std::string, std::string> LeftPaused(const Json& node) {
  std::map<std::string, std::string> left;
  const auto labels = analysis::TextsAt(node, {"metadata", "labels"});
  const Json& fields = analysis::At(node, {"metadata", "managedFields"});
  if (!fields.is_array()) return left;
  for (const Json& entry : fields) {
    if (analysis::TextAt(entry, {"manager"}) != kClientsManager) continue;
    const Json& ours = analysis::At(entry, {"fieldsV1", "f:metadata", "f:labels"});
    for (const device::Dialect* dialect : backend::Dialects())
      if (const device::PartTerms* terms = dialect->part_terms())
        for (const std::string& key : terms->client_labels)
          if (const auto label = labels.find(key); ours.is_object() && ours.contains("f:" + key) &&
                                                   label != labels.end() &&
                                                   label->second == terms->paused)
            left[key] = "true";
  }
  return left;
}

/// Whether the node was deleted meanwhile ("uid mismatch"), possibly replaced by another of the
/// same name ("metadata.uid ... is immutable").
bool IsGone(const base::Error& error) {
  const auto mentions = [&error](std::string_view text) {
    return error.message().find(text) != std::string::npos;
  };
  return error.code() == Code::kNotFound ||
         (error.code() == Code::kAborted && mentions("uid mismatch")) ||
         (error.code() == Code::kInvalidArgument && mentions("metadata.uid"));
}

class Cleaner {
 public:
  Cleaner(const ApiServer& server, const CleanupOptions& options, CleanupOutcome& outcome)
      : server_(server), options_(options), outcome_(outcome) {}

  /// Returns false where the server does not respond: the caller then stops.
  bool Nodes() {
    const auto nodes = List(kinds::Nodes(), "");
    if (!nodes.ok()) {
      Fail("cannot read the nodes", nodes.error());
      return nodes.error().code() != Code::kUnavailable;
    }
    for (const Json& node : *nodes) {
      StartClients(node);
      RemoveCondition(node);
      for (const auto& [manager, apply] : OurApplies(node))
        protocol::kube::MayBeTakenBack(apply) ? GiveBack(node, manager) : Leave(node, manager);
    }
    return true;
  }

  void Objects(const Resource& kind, std::string_view namespace_name, const std::string& what,
               bool only_own) {
    const auto there = HasKind(server_, kind);
    if (!there.ok())
      return Fail("cannot determine whether there are " + what + " objects", there.error());
    if (!*there) return;
    const auto objects = List(kind, namespace_name);
    if (!objects.ok()) return Fail(what + " objects cannot be read", objects.error());
    for (const Json& object : *objects)
      if (!only_own || IsMadeByUs(object)) Remove(kind, object, what);
  }

 private:
  Result<std::vector<Json>> List(const Resource& kind, std::string_view namespace_name) {
    std::map<std::string, std::string> query;
    if (!options_.cluster.node.empty() && namespace_name.empty())
      query["fieldSelector"] = "metadata.name=" + options_.cluster.node;
    return ListObjects(server_, kind, namespace_name, std::move(query));
  }

  bool IsMadeByUs(const Json& object) const {
    const std::string& node = options_.cluster.node;
    if (!node.empty() && analysis::TextAt(object, {"metadata", "labels",
                                                   "nfd.node.kubernetes.io/node-name"}) != node)
      return false;
    return !OurApplies(object).empty();
  }

  /// With the version, so that no value is replaced that a user writes meanwhile; on a conflict the
  /// node is read again.
  void StartClients(Json node) {
    const std::string name = analysis::TextAt(node, {"metadata", "name"});
    for (int attempt = 1;; ++attempt) {
      const auto set = LeftPaused(node);
      if (set.empty()) return;
      const Json patch = {
          {"metadata",
           {{"uid", analysis::TextAt(node, {"metadata", "uid"})},
            {"resourceVersion", analysis::TextAt(node, {"metadata", "resourceVersion"})},
            {"labels", set}}}};
      protocol::kube::ApiCall call = protocol::kube::Patch(
          kinds::Nodes(), "", name, protocol::kube::kMergePatch, patch, kClientsManager);
      if (options_.dry_run) call.query["dryRun"] = "All";
      const auto written = server_(std::move(call));
      if (written.ok()) {
        for (const auto& [key, value] : set)
          Removed("node " + name + ": the pause of " + key + ", which is \"" + value + "\" again");
        return;
      }
      if (IsGone(written.error())) return;
      if (written.error().code() != Code::kAborted || attempt == kAttempts)
        return Fail("node " + name, written.error());
      auto now = GetObject(server_, kinds::Nodes(), "", name);
      if (!now.ok()) return Fail("node " + name, now.error());
      node = *std::move(now);
    }
  }

  /// The condition by which the agent says whether the accelerators are ready.
  void RemoveCondition(const Json& node) {
    const Json& conditions = analysis::At(node, {"status", "conditions"});
    if (!conditions.is_array() || std::ranges::none_of(conditions, [](const Json& one) {
          return analysis::TextAt(one, {"type"}) == kReadyCondition;
        }))
      return;
    const std::string name = analysis::TextAt(node, {"metadata", "name"});
    const Json patch = {
        {"status",
         {{"conditions", Json::array({{{"$patch", "delete"}, {"type", kReadyCondition}}})}}}};
    protocol::kube::ApiCall call =
        protocol::kube::Patch(kinds::Nodes(), "", name, protocol::kube::kStrategicMergePatch, patch,
                              std::string(kManagers), "status");
    if (options_.dry_run) call.query["dryRun"] = "All";
    const auto written = server_(std::move(call));
    if (!written.ok() && IsGone(written.error())) return;
    if (!written.ok()) return Fail("node " + name, written.error());
    Removed("node " + name + ": the condition " + std::string(kReadyCondition));
  }

  /// Applies an empty configuration under the manager's name: the server then removes the fields
  /// that only this manager owns. The uid prevents the server from recreating a node that was
  /// deleted meanwhile.
  void GiveBack(const Json& node, const std::string& manager) {
    const std::string name = analysis::TextAt(node, {"metadata", "name"});
    Json nothing = {{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", name}}}};
    if (const std::string uid = analysis::TextAt(node, {"metadata", "uid"}); !uid.empty())
      nothing["metadata"]["uid"] = uid;
    protocol::kube::ApiCall call = protocol::kube::Apply(kinds::Nodes(), "", nothing, manager);
    if (options_.dry_run) call.query["dryRun"] = "All";
    const auto after = protocol::kube::Parse(server_(std::move(call)));
    if (!after.ok() && IsGone(after.error())) return;
    if (!after.ok()) return Fail("node " + name, after.error());
    for (const char* map : {"labels", "annotations"}) {
      const auto gone = Vanished(node, *after, map);
      const std::string what =
          gone.size() == 1 ? std::string(map).substr(0, std::string_view(map).size() - 1) : map;
      if (!gone.empty())
        Removed("node " + name + ": " + std::to_string(gone.size()) + " " + what + " (" +
                base::Join(gone, ", ") + ")");
    }
  }

  void Leave(const Json& node, const std::string& manager) {
    const std::string name = analysis::TextAt(node, {"metadata", "name"});
    outcome_.remarks.push_back(
        "node " + name + ": what the field manager " + manager +
        " has applied stays, since there is more in it than the labels and annotations that "
        "Penstock writes; `kubectl get node " +
        name + " -o yaml --show-managed-fields` shows it");
  }

  void Remove(const Resource& kind, const Json& object, const std::string& what) {
    const std::string name = analysis::TextAt(object, {"metadata", "name"}),
                      space = analysis::TextAt(object, {"metadata", "namespace"});
    protocol::kube::ApiCall call = protocol::kube::Delete(kind, space, name);
    if (options_.dry_run) call.query["dryRun"] = "All";
    const auto done = server_(std::move(call));
    if (!done.ok() && done.error().code() == Code::kNotFound) return;
    if (!done.ok()) return Fail(what + " " + name, done.error());
    Removed(what + " " + (space.empty() ? name : space + "/" + name));
  }

  void Removed(std::string what) { outcome_.removed.push_back(std::move(what)); }
  void Fail(const std::string& what, const base::Error& error) {
    outcome_.failures.push_back(what + ": " + error.message());
  }

  const ApiServer& server_;
  const CleanupOptions& options_;
  CleanupOutcome& outcome_;
};

}  // namespace

void CleanCluster(const ApiServer& server, const CleanupOptions& options, CleanupOutcome& outcome) {
  Cleaner cleaner(server, options, outcome);
  if (!cleaner.Nodes()) return;
  cleaner.Objects(kinds::NodeStates(), "", "NodeState", false);
  cleaner.Objects(kinds::NodeFeatures(), options.namespace_name, "NodeFeature", true);
}

std::vector<std::string> WaitForDaemonSet(const ApiServer& server, const std::string& name,
                                          base::Duration timeout, const base::Clock& clock,
                                          const Sleep& sleep) {
  const auto slash = name.find('/');
  if (slash == std::string::npos) return {name + ": a DaemonSet is named NAMESPACE/NAME"};
  const auto end = clock.Now() + timeout;
  std::string last;
  while (true) {
    const auto set = GetObject(server, {"apps", "v1", "daemonsets"}, name.substr(0, slash),
                               name.substr(slash + 1));
    if (set.ok()) {
      const auto number = [&set](std::string_view key) {
        const Json& value = analysis::At(*set, {"status", key});
        return value.is_number_integer() ? value.get<std::int64_t>() : 0;
      };
      const Json& generation = analysis::At(*set, {"metadata", "generation"});
      const bool seen = !generation.is_number_integer() ||
                        number("observedGeneration") >= generation.get<std::int64_t>();
      if (seen && number("numberReady") >= number("desiredNumberScheduled")) return {};
      last = std::to_string(number("numberReady")) + " of " +
             std::to_string(number("desiredNumberScheduled")) + " of its pods are ready";
    } else {
      if (set.error().code() == Code::kNotFound) return {};
      last = set.error().message();
    }
    if (clock.Now() >= end)
      return {"DaemonSet " + name + ": " + last + " after " + base::FormatDuration(timeout) +
              "; continuing without it"};
    sleep(kPollInterval);
  }
}

}  // namespace penstock::app
