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
#include "protocol/kube/status_error.h"

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
        if (!protocol::kube::MayBeTakenBack(apply)) Leave(node, manager);
      RemoveMarks(node);
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

  void StartClients(const Json& node) {
    Change(node, kClientsManager, [](const Json& now) {
      NodeChange change;
      const auto set = LeftPaused(now);
      if (set.empty()) return change;
      change.patch = {{"metadata",
                       {{"uid", analysis::TextAt(now, {"metadata", "uid"})},
                        {"resourceVersion", analysis::TextAt(now, {"metadata", "resourceVersion"})},
                        {"labels", set}}}};
      for (const auto& [key, value] : set)
        change.removed.push_back("the pause of " + key + ", which is \"" + value + "\" again");
      return change;
    });
  }

  /// The condition by which the agent says whether the accelerators are ready.
  void RemoveCondition(const Json& node) {
    const Json& conditions = analysis::At(node, {"status", "conditions"});
    if (!conditions.is_array() || std::ranges::none_of(conditions, [](const Json& one) {
          return analysis::TextAt(one, {"type"}) == kReadyCondition;
        }))
      return;
    const std::string name = analysis::TextAt(node, {"metadata", "name"});
    protocol::kube::ApiCall call =
        protocol::kube::Patch(kinds::Nodes(), "", name, protocol::kube::kStrategicMergePatch,
                              protocol::kube::WithoutCondition(
                                  kReadyCondition, analysis::TextAt(node, {"metadata", "uid"})),
                              kManagers, "status");
    if (options_.dry_run) call.query["dryRun"] = "All";
    const auto written = server_(std::move(call));
    if (!written.ok() && protocol::kube::IsOfAnother(written.error())) return;
    if (!written.ok()) return Fail("node " + name, written.error());
    Removed("node " + name + ": the condition " + std::string(kReadyCondition));
  }

  /// The labels and annotations that only Penstock's managers have applied.
  void RemoveMarks(const Json& node) {
    Change(node, std::string(kManagers), [](const Json& now) {
      NodeChange change;
      const auto marks =
          protocol::kube::OwnedAlone(now, protocol::kube::MayBeTakenBack, &IsOwnManager);
      if (marks.empty()) return change;
      change.patch = protocol::kube::Without(marks, now);
      const auto say = [&change](const std::string& what, const std::set<std::string>& keys) {
        if (keys.empty()) return;
        const std::vector<std::string> names(keys.begin(), keys.end());
        change.removed.push_back(std::to_string(names.size()) + " " + what +
                                 (names.size() == 1 ? "" : "s") + " (" + base::Join(names, ", ") +
                                 ")");
      };
      say("label", marks.labels);
      say("annotation", marks.annotations);
      return change;
    });
  }

  struct NodeChange {
    Json patch;  // null: there is nothing to do
    std::vector<std::string> removed;
  };
  /// Writes what `plan` returns for a Node, with its version, so that nothing goes that anyone
  /// writes meanwhile; on a conflict the Node is read again.
  template <typename Plan>
  void Change(Json node, std::string_view manager, Plan plan) {
    const std::string name = analysis::TextAt(node, {"metadata", "name"});
    for (int attempt = 1;; ++attempt) {
      const NodeChange change = plan(node);
      if (change.patch.is_null()) return;
      protocol::kube::ApiCall call =
          protocol::kube::Patch(kinds::Nodes(), "", name, protocol::kube::kMergePatch, change.patch,
                                std::string(manager));
      if (options_.dry_run) call.query["dryRun"] = "All";
      const auto written = server_(std::move(call));
      if (written.ok()) {
        for (const std::string& what : change.removed) Removed("node " + name + ": " + what);
        return;
      }
      if (protocol::kube::IsOfAnother(written.error())) return;
      if (written.error().code() != Code::kAborted || attempt == kAttempts)
        return Fail("node " + name, written.error());
      auto now = GetObject(server_, kinds::Nodes(), "", name);
      if (!now.ok()) return Fail("node " + name, now.error());
      node = *std::move(now);
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
