#include "adapter/cluster/pod_label_watch.h"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/core/strings.h"
#include "base/lifetime.h"
#include "protocol/kube/informer.h"

namespace penstock::adapter::cluster {

using protocol::kube::Informer;
using protocol::kube::Json;
using protocol::kube::ReconcileLoop;

namespace {

constexpr base::Duration kTogether = std::chrono::milliseconds(20);
/// The kubelet's default limit is 110 pods; some clusters set several hundred.
constexpr std::size_t kMaxPods = 4096, kMaxBytes = 16u << 20;

std::string TextAt(const Json& metadata, const char* key) {
  const auto found = metadata.find(key);
  return found != metadata.end() && found->is_string() ? found->get<std::string>() : "";
}

PodMetadata FactsOf(const Json& metadata, const std::vector<std::string>& wanted) {
  PodMetadata facts{.uid = TextAt(metadata, "uid")};
  const auto labels = metadata.find("labels");
  if (labels == metadata.end() || !labels->is_object()) return facts;
  for (const auto& [key, value] : labels->items())
    if (value.is_string() && std::ranges::any_of(wanted, [&k = key](const auto& glob) {
          return base::GlobMatch(glob, k);
        }))
      facts.labels[key] = value.get<std::string>();
  return facts;
}

}  // namespace

struct PodLabelWatch::State : std::enable_shared_from_this<State> {
  State(protocol::kube::Api& a, std::string n, std::vector<std::string> w, Callbacks c)
      : api(a), node(std::move(n)), wanted(std::move(w)), callbacks(std::move(c)) {}

  void Start() {
    if (wanted.empty()) return callbacks.changed(nullptr);
    Informer::Options options;
    options.resource = {"", "v1", "pods"};
    options.field_selector = "spec.nodeName=" + node;
    options.metadata_only = true;
    options.without = {"/spec", "/status", "/metadata/annotations", "/metadata/ownerReferences",
                       "/metadata/finalizers"};
    options.most_objects = kMaxPods;
    options.most_bytes = kMaxBytes;
    informer.emplace(
        api, options,
        Informer::Handlers{.changed = [this](const Json& pod) { Changed(pod); },
                           .removed = [this](const std::string& space,
                                             const std::string& name) { Removed(space, name); },
                           .synced = [this] { ScheduleUpdate(); },
                           .problem = [this](const base::Status& why) { OnError(why); }});
    informer->Start();
  }

  void Changed(const Json& pod) {
    const auto metadata = pod.find("metadata");
    if (metadata == pod.end() || !metadata->is_object()) return;
    PodMetadata& known = pods[{TextAt(*metadata, "namespace"), TextAt(*metadata, "name")}];
    PodMetadata facts = FactsOf(*metadata, wanted);
    if (known == facts) return;
    known = std::move(facts);
    ScheduleUpdate();
  }

  void Removed(const std::string& space, const std::string& name) {
    if (pods.erase({space, name}) != 0) ScheduleUpdate();
  }

  void OnError(const base::Status& why) {
    callbacks.problem(why.ok()
                          ? ReconcileLoop::Problem{}
                          : ReconcileLoop::Problem{why.error().message(),
                                                   ReconcileLoop::IsRefusal(why.error().code())});
  }

  void ScheduleUpdate() {
    if (!informer->synced() || std::exchange(coming, true)) return;
    api.executor().PostAfter(
        kTogether, base::IfAlive(this, [](State& self) {
          self.coming = false;
          self.callbacks.changed(std::make_shared<const PodsOfNode>(self.pods));
        }));
  }

  protocol::kube::Api& api;
  const std::string node;
  const std::vector<std::string> wanted;
  const Callbacks callbacks;
  PodsOfNode pods;
  bool coming = false;
  std::optional<Informer> informer;
};

PodLabelWatch::PodLabelWatch(protocol::kube::Api& api, std::string node,
                             std::vector<std::string> wanted, Callbacks callbacks)
    : state_(
          std::make_shared<State>(api, std::move(node), std::move(wanted), std::move(callbacks))) {}

PodLabelWatch::~PodLabelWatch() = default;

void PodLabelWatch::Start() { state_->Start(); }

}  // namespace penstock::adapter::cluster
