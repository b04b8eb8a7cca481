#include "app/penstock/cluster/support_bundle.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include <nlohmann/json.hpp>

#include "analysis/explain/explain.h"
#include "analysis/explain/nodes.h"
#include "app/penstock/cluster/explain_show.h"
#include "app/penstock/common/table.h"
#include "base/core/json_text.h"
#include "base/core/strings.h"

namespace penstock::app {

using base::Code;
using base::Result;
using protocol::kube::Resource;

namespace {

constexpr std::string_view kPartOf = "app.kubernetes.io/name in (penstock,gpu-operator)";
constexpr std::string_view kOfDrivers = "penstock.io/driver-pool";  // operator/driver
constexpr std::string_view kHidden = "(removed)";
constexpr std::size_t kMostOfALog = 2u << 20;

struct KindToRead {
  std::string_view file;
  Resource resource;
  /// Only those that have one of these sets of labels; empty: all.
  std::vector<std::string_view> selectors = {};
};

const std::vector<KindToRead>& KindsToRead() {
  static const std::vector<KindToRead> kinds{
      {"nodes", kinds::Nodes()},
      {"nodestates", kinds::NodeStates()},
      {"penstocks", {"penstock.io", "v1alpha1", "penstocks"}},
      {"clusterpolicies", {"nvidia.com", "v1", "clusterpolicies"}},
      {"nvidiadrivers", {"nvidia.com", "v1alpha1", "nvidiadrivers"}},
      {"gpuclusters", {"nvidia.com", "v1alpha1", "gpuclusters"}},
      {"deviceconfigs", {"amd.com", "v1alpha1", "deviceconfigs"}},
      {"runtimeclasses", {"node.k8s.io", "v1", "runtimeclasses"}},
      {"daemonsets", {"apps", "v1", "daemonsets"}, {kPartOf, kOfDrivers}},
      {"deployments", {"apps", "v1", "deployments"}, {kPartOf}},
      {"pods", kinds::Pods(), {kPartOf, kOfDrivers}},
      {"services", {"", "v1", "services"}, {kPartOf}},
      {"configmaps", {"", "v1", "configmaps"}, {kPartOf}},
      {"leases", {"coordination.k8s.io", "v1", "leases"}, {kPartOf}},
  };
  return kinds;
}

/// The kinds of objects without a namespace that have Events: file, and kind.
constexpr std::pair<const char*, const char*> kKindsWithEvents[] = {
    {"nodes", "Node"},
    {"penstocks", "Penstock"},
    {"clusterpolicies", "ClusterPolicy"},
    {"nvidiadrivers", "NVIDIADriver"},
    {"gpuclusters", "GPUCluster"}};

bool SaysSecret(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  constexpr std::array kWords{"TOKEN", "PASSWORD", "PASSWD", "SECRET", "CREDENTIAL", "KEY"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](const char* word) { return name.find(word) != std::string::npos; });
}

/// Removes the values of secret variables, wherever the object has a list "env".
void HideSecrets(Json& value) {
  if (!value.is_structured()) return;
  for (auto& [key, item] : value.items()) {
    if (key == "env" && item.is_array())
      for (Json& variable : item)
        if (variable.contains("value") && SaysSecret(analysis::TextAt(variable, {"name"})))
          variable["value"] = kHidden;
    HideSecrets(item);
  }
}

Json Shortened(Json object) {
  if (!object.contains("metadata") || !object["metadata"].is_object()) return object;
  Json& metadata = object["metadata"];
  metadata.erase("managedFields");
  if (metadata.contains("annotations") && metadata["annotations"].is_object())
    metadata["annotations"].erase("kubectl.kubernetes.io/last-applied-configuration");
  HideSecrets(object);
  return object;
}

/// A name of an object as a part of a path. A server may be hostile, and its names need not be
/// Kubernetes'.
std::string Safe(const std::string& name) {
  std::string safe;
  for (const char c : name.substr(0, 100)) {
    const bool kept = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' ||
                      (c == '.' && !safe.empty() && safe.back() != '.');
    safe += kept ? c : '_';
  }
  return safe.empty() ? "_" : safe;
}

class Bundle {
 public:
  Bundle(const ApiServer& server, const BundleOptions& options,
         const std::function<void(const std::string&)>& progress)
      : server_(server), options_(options), progress_(progress) {}

  std::vector<ArchivedFile> Gather(base::WallTime now) {
    ReadObjects();
    ReadEvents();
    ExplainNodes(now);
    if (options_.logs) ReadLogs();
    files_.insert(files_.begin(), {"index.txt", Index(now)});
    return std::move(files_);
  }

 private:
  void Add(std::string path, std::string content) {
    index_.push_back(path + "  " + std::to_string(content.size()) + " bytes");
    files_.push_back({std::move(path), std::move(content)});
  }

  void AddProblem(const std::string& what, const base::Error& error) {
    // Kinds of other vendors' operators need not exist.
    index_.push_back(error.code() == Code::kNotFound ? what + ": the cluster has none"
                                                     : what + ": NOT READ: " + error.message());
  }

  void AddList(const std::string& path, const std::string& what,
               Result<std::vector<Json>> objects) {
    if (!objects.ok()) return AddProblem(what, objects.error());
    Json list = Json::array();
    for (Json& object : *objects) list.push_back(Shortened(std::move(object)));
    Add(path, base::JsonText(Json{{"apiVersion", "v1"}, {"kind", "List"}, {"items", list}}) + "\n");
  }

  void ReadObjects() {
    for (const KindToRead& kind : KindsToRead()) {
      const std::string name(kind.file);
      progress_("reading " + name);
      auto objects = ReadKind(kind);
      if (objects.ok()) Remember(name, *objects);
      AddList("objects/" + name + ".json", name, std::move(objects));
    }
  }

  Result<std::vector<Json>> ReadKind(const KindToRead& kind) {
    if (kind.selectors.empty()) return ListObjects(server_, kind.resource, "");
    std::vector<Json> all;
    for (const std::string_view selector : kind.selectors) {
      ASSIGN(auto objects,
             ListObjects(server_, kind.resource, "", {{"labelSelector", std::string(selector)}}));
      std::ranges::move(objects, std::back_inserter(all));
    }
    return all;
  }

  void Remember(const std::string& kind, const std::vector<Json>& objects) {
    if (kind == "nodes") nodes_ = objects;
    if (kind == "nodestates") states_ = objects;
    if (kind != "pods") return;
    pods_ = objects;
    for (const Json& pod : pods_)
      namespaces_.insert(analysis::TextAt(pod, {"metadata", "namespace"}));
  }

  void ReadEvents() {
    const Resource events{"", "v1", "events"};
    progress_("reading events");
    for (const auto& [file, kind] : kKindsWithEvents)
      AddList("events/" + std::string(file) + ".json", "events about " + std::string(file),
              ListObjects(server_, events, "default",
                          {{"fieldSelector", "involvedObject.kind=" + std::string(kind)}}));
    for (const std::string& name : namespaces_)
      AddList("events/" + Safe(name) + ".json", "events of namespace " + name,
              ListObjects(server_, events, name));
  }

  void ExplainNodes(base::WallTime now) {
    progress_("explaining the nodes");
    std::vector<Json> agents = pods_;
    std::erase_if(agents, [](const Json& pod) {
      return !analysis::TextAt(pod, {"metadata", "labels", kOfDrivers}).empty();
    });
    for (analysis::NodeView& view : analysis::JoinNodes(nodes_, states_, agents)) {
      const std::string path = "nodes/" + Safe(view.name) + ".txt";
      const auto explanation = analysis::Explain(
          std::move(view), {.unknown = "users' pods are not part of a support bundle"}, false);
      Add(path, ShowExplanation(explanation, Style{}, now));
    }
  }

  void ReadLogs() {
    for (const Json& pod : pods_) {
      ReadLogsOf(pod, "initContainers", "initContainerStatuses");
      ReadLogsOf(pod, "containers", "containerStatuses");
    }
  }

  void ReadLogsOf(const Json& pod, const char* list, const char* status_list) {
    const Json& containers = analysis::At(pod, {"spec", list});
    if (!containers.is_array()) return;
    for (const Json& container : containers) {
      const std::string name = analysis::TextAt(container, {"name"});
      ReadLog(pod, name, false);
      if (HasRestarted(analysis::At(pod, {"status", status_list}), name)) ReadLog(pod, name, true);
    }
  }

  static bool HasRestarted(const Json& statuses, const std::string& container) {
    if (!statuses.is_array()) return false;
    return std::any_of(statuses.begin(), statuses.end(), [&](const Json& status) {
      const Json& count = analysis::At(status, {"restartCount"});
      return analysis::TextAt(status, {"name"}) == container && count.is_number_integer() &&
             count.get<std::int64_t>() > 0;
    });
  }

  void ReadLog(const Json& pod, const std::string& container, bool previous) {
    const std::string name = analysis::TextAt(pod, {"metadata", "name"});
    const std::string in = analysis::TextAt(pod, {"metadata", "namespace"});
    const std::string what =
        "log of " + in + "/" + name + ", " + container + (previous ? ", before its restart" : "");
    progress_("reading " + what);
    std::map<std::string, std::string> query{{"container", container},
                                             {"tailLines", std::to_string(options_.lines)},
                                             {"limitBytes", std::to_string(kMostOfALog)},
                                             {"timestamps", "true"}};
    if (previous) query["previous"] = "true";
    const auto answer =
        server_({.path = kinds::Pods().Path(in, name, "log"), .query = query, .accept = "*/*"});
    if (!answer.ok()) return AddProblem(what, answer.error());
    Add("logs/" + Safe(in) + "/" + Safe(name) + "/" + Safe(container) +
            (previous ? ".previous.log" : ".log"),
        answer->body);
  }

  std::string Index(base::WallTime now) const {
    return "penstock " PENSTOCK_VERSION ", " + base::FormatTime(now) + "\n" +
           std::to_string(nodes_.size()) + " nodes, " + std::to_string(pods_.size()) +
           " pods of Penstock\n\n" + base::Join(index_, "\n") + "\n";
  }

  const ApiServer& server_;
  const BundleOptions& options_;
  const std::function<void(const std::string&)>& progress_;
  std::vector<ArchivedFile> files_;
  std::vector<std::string> index_;
  std::set<std::string> namespaces_;
  std::vector<Json> nodes_, states_, pods_;
};

}  // namespace

std::vector<ArchivedFile> GatherBundle(const ApiServer& server, const BundleOptions& options,
                                       const std::function<void(const std::string&)>& progress,
                                       base::WallTime now) {
  return Bundle(server, options, progress).Gather(now);
}

}  // namespace penstock::app
