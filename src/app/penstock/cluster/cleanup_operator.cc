#include "app/penstock/cluster/cleanup_operator.h"

#include <algorithm>
#include <set>

#include <nlohmann/json.hpp>

#include "api/compat/policy_kinds.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"
#include "protocol/kube/reconcile_loop.h"

namespace penstock::app {

using base::Code;
using protocol::kube::Resource;

namespace {

// Names that src/operator gives.
constexpr std::string_view kFinalizer = "penstock.io/cleanup";
constexpr std::string_view kMadeByOperator = "app.kubernetes.io/managed-by=penstock-operator";
constexpr std::string_view kOperatorLease = "penstock-operator";
constexpr std::string_view kCleanupManager = "penstock-cleanup";
constexpr std::string_view kDefinitions[] = {
    "clusterpolicies.nvidia.com", "nvidiadrivers.nvidia.com", "gpuclusters.nvidia.com",
    "deviceconfigs.amd.com",      "penstocks.penstock.io",    "nodestates.penstock.io"};
constexpr base::Duration kListInterval = std::chrono::milliseconds(500);
constexpr base::Duration kReleasedWithin = std::chrono::seconds(20);

struct NamedKind {
  Resource resource;
  std::string name;
  bool namespaced = true;
  bool held = true;  // policies: objects have the operator's finalizer
};

/// Of those in namespaces, the operator reads and marks the ones in its own.
const std::vector<NamedKind>& PolicyKinds() {
  static const std::vector<NamedKind> kinds = {
      {{"nvidia.com", "v1", "clusterpolicies"}, "ClusterPolicy", false},
      {{"nvidia.com", "v1alpha1", "nvidiadrivers"}, "NVIDIADriver", false, false},
      {{"nvidia.com", "v1alpha1", "gpuclusters"}, "GPUCluster", false, false},
      {{"amd.com", "v1alpha1", "deviceconfigs"}, "DeviceConfig"},
      {{"penstock.io", "v1alpha1", "penstocks"}, "Penstock", false}};
  return kinds;
}

/// The DaemonSet comes first, so that its pods end early.
const std::vector<NamedKind>& MadeKinds() {
  static const std::vector<NamedKind> kinds = {
      {{"apps", "v1", "daemonsets"}, "DaemonSet"},
      {{"", "v1", "configmaps"}, "ConfigMap"},
      {{"", "v1", "services"}, "Service"},
      {{"monitoring.coreos.com", "v1", "servicemonitors"}, "ServiceMonitor"},
      {{"node.k8s.io", "v1", "runtimeclasses"}, "RuntimeClass", false}};
  return kinds;
}

std::string NameOfObject(const Json& object) {
  return analysis::TextAt(object, {"metadata", "name"});
}

bool IsOfRelease(const Json& object, const std::string& release) {
  const auto annotations = analysis::TextsAt(object, {"metadata", "annotations"});
  const auto value = [&annotations](const char* key) {
    const auto found = annotations.find(key);
    return found == annotations.end() ? std::string() : found->second;
  };
  return value("meta.helm.sh/release-namespace") + "/" + value("meta.helm.sh/release-name") ==
         release;
}

/// An object as messages name it.
std::string NameFor(const NamedKind& kind, const std::string& space, const std::string& name) {
  return kind.name + " " + (kind.namespaced ? space + "/" : "") + name;
}

/// Reads all objects of the kind; none where the server does not have it.
std::vector<Json> Those(const ApiServer& server, const NamedKind& kind, const std::string& space,
                        const std::string& selector, CleanupOutcome& outcome) {
  const auto there = HasKind(server, kind.resource);
  if (there.ok() && !*there) return {};
  std::map<std::string, std::string> query;
  if (!selector.empty()) query["labelSelector"] = selector;
  auto objects = there.ok()
                     ? ListObjects(server, kind.resource, kind.namespaced ? space : "", query)
                     : base::Result<std::vector<Json>>(there.error());
  if (objects.ok()) return *std::move(objects);
  outcome.failures.push_back(kind.name + " objects cannot be read: " + objects.error().message());
  return {};
}

/// Returns whether the object is gone, or going.
bool DeleteOne(const ApiServer& server, const NamedKind& kind, const std::string& space,
               const std::string& name, bool dry_run, CleanupOutcome& outcome) {
  protocol::kube::ApiCall call =
      protocol::kube::Delete(kind.resource, kind.namespaced ? space : "", name);
  if (kind.resource.plural == "daemonsets")
    call.query["propagationPolicy"] = "Foreground";  // it stays until its pods are gone
  if (dry_run) call.query["dryRun"] = "All";
  const auto done = server(std::move(call));
  if (!done.ok() && done.error().code() == Code::kNotFound) return true;
  if (!done.ok()) {
    outcome.failures.push_back(NameFor(kind, space, name) + ": " + done.error().message());
    return false;
  }
  outcome.removed.push_back(NameFor(kind, space, name));
  return true;
}

/// For how long what is refused for the time being is tried again.
struct Retries {
  const base::Clock& clock;
  const Sleep& sleep;
  const base::TimePoint end = clock.Now() + kReleasedWithin;
};

/// The list without the operator's finalizer; null: it is not in it.
Json OtherFinalizers(const Json& object) {
  const Json& finalizers = analysis::At(object, {"metadata", "finalizers"});
  if (!finalizers.is_array()) return {};
  Json others = Json::array();
  for (const Json& one : finalizers)
    if (one != kFinalizer) others.push_back(one);
  return others.size() == finalizers.size() ? Json() : others;
}

/// The list of finalizers is replaced as a whole, so the version guards those of others.
base::Status PatchFinalizers(const ApiServer& server, const NamedKind& kind,
                             const std::string& space, const Json& object, const Json& others,
                             bool dry_run) {
  const Json patch = {
      {"metadata",
       {{"resourceVersion", analysis::TextAt(object, {"metadata", "resourceVersion"})},
        {"finalizers", others}}}};
  protocol::kube::ApiCall call =
      protocol::kube::Patch(kind.resource, kind.namespaced ? space : "", NameOfObject(object),
                            protocol::kube::kMergePatch, patch, kCleanupManager);
  if (dry_run) call.query["dryRun"] = "All";
  const auto done = server(std::move(call));
  return done.ok() ? base::Status() : base::Status(done.error());
}

/// As it is now; null: it is gone, or another object has its name; where it cannot be read, as it
/// was. Lists it: the clean-up may not get single objects.
Json ReadAgain(const ApiServer& server, const NamedKind& kind, const std::string& space,
               const Json& object) {
  auto found = ListObjects(server, kind.resource, kind.namespaced ? space : "",
                           {{"fieldSelector", "metadata.name=" + NameOfObject(object)}});
  if (!found.ok()) return object;
  for (Json& one : *found)
    if (analysis::TextAt(one, {"metadata", "uid"}) == analysis::TextAt(object, {"metadata", "uid"}))
      return std::move(one);
  return {};
}

void RemoveFinalizer(const ApiServer& server, const NamedKind& kind, const std::string& space,
                     Json object, const Retries& retries, bool dry_run, CleanupOutcome& outcome) {
  const std::string name = NameFor(kind, space, NameOfObject(object));
  while (true) {
    const Json others = OtherFinalizers(object);
    if (others.is_null()) return;
    const base::Status done = PatchFinalizers(server, kind, space, object, others, dry_run);
    if (done.ok())
      return outcome.removed.push_back("the finalizer " + std::string(kFinalizer) + " of " + name);
    const Code code = done.error().code();
    if (code == Code::kNotFound) return;
    if (protocol::kube::ReconcileLoop::IsRefusal(code) || retries.clock.Now() >= retries.end)
      return outcome.failures.push_back(name + ": " + done.error().message());
    retries.sleep(kListInterval);
    object = ReadAgain(server, kind, space, object);
  }
}

/// An object of the definition's kind in a namespace that is not the operator's, as messages name
/// it; empty: there is none. One is enough: there may be any number.
base::Result<std::string> ObjectElsewhere(const ApiServer& server, const std::string& definition,
                                          const std::string& space) {
  for (const NamedKind& kind : PolicyKinds()) {
    if (!kind.namespaced || definition != kind.resource.plural + "." + kind.resource.group)
      continue;
    const auto list = protocol::kube::Parse(
        server({.path = kind.resource.Path(""),
                .query = {{"fieldSelector", "metadata.namespace!=" + space}, {"limit", "1"}}}));
    if (!list.ok()) return list.error();
    const Json& items = analysis::At(*list, {"items"});
    if (items.is_array() && !items.empty())
      return kind.name + " " + analysis::TextAt(items[0], {"metadata", "namespace"}) + "/" +
             NameOfObject(items[0]);
  }
  return std::string();
}

/// All objects would go with it: also those of another operator that has applied it, and those of
/// users in other namespaces, which this operator never read.
void DeleteDefinition(const ApiServer& server, const std::string& name,
                      const CleanupOptions& options, CleanupOutcome& outcome) {
  static const NamedKind definitions = {{"apiextensions.k8s.io", "v1", "customresourcedefinitions"},
                                        "CustomResourceDefinition",
                                        false};
  const auto found =
      protocol::kube::Parse(server(protocol::kube::Get(definitions.resource, "", name)));
  const std::string stays = definitions.name + " " + name + " stays: ";
  if (!found.ok() && found.error().code() == Code::kNotFound) return;
  if (!found.ok()) return outcome.failures.push_back(stays + found.error().message());
  if (api::compat::IsForeignDefinition(name,
                                       analysis::TextsAt(*found, {"metadata", "annotations"})))
    return outcome.remarks.push_back(stays + "another operator has applied it, and may use it");
  const auto elsewhere = ObjectElsewhere(server, name, options.namespace_name);
  if (!elsewhere.ok())
    return outcome.failures.push_back(
        stays + "objects of other namespaces cannot be read: " + elsewhere.error().message());
  if (!elsewhere->empty())
    return outcome.remarks.push_back(
        stays + *elsewhere + " would be deleted with it, and is not in the namespace " +
        options.namespace_name + "; delete such objects, then `kubectl delete crd " + name + "`");
  DeleteOne(server, definitions, "", name, options.dry_run, outcome);
}

struct Found {
  const NamedKind& kind;
  Json object;
};

/// Of the deleted objects, by uid, those that are still there. What cannot be read is a failure of
/// `unread`.
std::vector<Found> StillThere(const ApiServer& server, const std::string& space,
                              const std::set<std::string>& deleted, CleanupOutcome& unread) {
  std::vector<Found> left;
  for (const NamedKind& kind : PolicyKinds())
    for (Json& object : Those(server, kind, space, "", unread))
      if (deleted.contains(analysis::TextAt(object, {"metadata", "uid"})))
        left.push_back({kind, std::move(object)});
  return left;
}

/// helm waits for objects that it deletes: without an operator it would do so until its timeout.
void ReleaseFrom(const ApiServer& server, const std::string& space, const std::vector<Found>& left,
                 const CleanupOutcome& unread, base::Duration timeout, const Retries& retries,
                 CleanupOutcome& outcome) {
  std::vector<std::string> names;
  for (const Found& one : left) names.push_back(NameFor(one.kind, space, NameOfObject(one.object)));
  names.insert(names.end(), unread.failures.begin(), unread.failures.end());
  outcome.remarks.push_back(base::Join(names, ", ") + ": the operator did not finish within " +
                            base::FormatDuration(timeout) +
                            "; `penstock cleanup --cluster --operator` removes what is left");
  for (const Found& one : left)
    RemoveFinalizer(server, one.kind, space, one.object, retries, false, outcome);
}

}  // namespace

CleanupOutcome DeletePolicies(const ApiServer& server, const CleanupOptions& options,
                              base::Duration timeout, const base::Clock& clock,
                              const Sleep& sleep) {
  CleanupOutcome outcome;
  std::set<std::string> deleted;
  const std::string space = options.release.substr(0, options.release.find('/'));
  for (const NamedKind& kind : PolicyKinds())
    for (const Json& object : Those(server, kind, space, "", outcome))
      if (IsOfRelease(object, options.release) &&
          DeleteOne(server, kind, space, NameOfObject(object), options.dry_run, outcome))
        deleted.insert(analysis::TextAt(object, {"metadata", "uid"}));
  if (options.dry_run || deleted.empty()) return outcome;
  const auto end = clock.Now() + timeout;
  while (true) {
    CleanupOutcome unread;
    const auto left = StillThere(server, space, deleted, unread);
    if (left.empty() && unread.failures.empty()) return outcome;
    if (clock.Now() >= end + (unread.failures.empty() ? base::Duration{} : kReleasedWithin)) {
      ReleaseFrom(server, space, left, unread, timeout, {clock, sleep}, outcome);
      return outcome;
    }
    sleep(kListInterval);
  }
}

bool CleanAfterOperator(const ApiServer& server, const CleanupOptions& options,
                        base::Duration timeout, const base::Clock& clock, const Sleep& sleep,
                        CleanupOutcome& outcome) {
  const NamedKind& agents = MadeKinds().front();
  const auto there = HasKind(server, agents.resource);
  if (!there.ok() && there.error().code() == Code::kUnavailable) {
    outcome.failures.push_back("what the operator made cannot be read: " + there.error().message());
    return false;
  }
  const auto made = [&](const NamedKind& kind, CleanupOutcome& unread) {
    return Those(server, kind, options.namespace_name, std::string(kMadeByOperator), unread);
  };
  for (const NamedKind& kind : MadeKinds())
    for (const Json& object : made(kind, outcome))
      DeleteOne(server, kind, options.namespace_name, NameOfObject(object), options.dry_run,
                outcome);
  const Retries retries{clock, sleep};
  for (const NamedKind& kind : PolicyKinds())
    for (const Json& object :
         kind.held ? Those(server, kind, options.namespace_name, "", outcome) : std::vector<Json>())
      RemoveFinalizer(server, kind, options.namespace_name, object, retries, options.dry_run,
                      outcome);
  const NamedKind leases = {{"coordination.k8s.io", "v1", "leases"}, "Lease"};
  DeleteOne(server, leases, options.namespace_name, std::string(kOperatorLease), options.dry_run,
            outcome);
  for (const auto end = clock.Now() + timeout; !options.dry_run; sleep(kListInterval)) {
    CleanupOutcome unread;
    if (made(agents, unread).empty()) break;
    if (clock.Now() < end) continue;
    outcome.remarks.push_back("pods of agents have not ended within " +
                              base::FormatDuration(timeout) +
                              ", and may write again: run this once more when they have");
    break;
  }
  return true;
}

void DeleteDefinitions(const ApiServer& server, const CleanupOptions& options,
                       CleanupOutcome& outcome) {
  for (const std::string_view name : kDefinitions)
    DeleteDefinition(server, std::string(name), options, outcome);
}

}  // namespace penstock::app
