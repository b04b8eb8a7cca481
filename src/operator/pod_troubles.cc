#include "operator/pod_troubles.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/core/printable.h"
#include "base/lifetime.h"
#include "operator/driver/rollout_facts.h"
#include "operator/json_values.h"
#include "operator/names.h"
#include "protocol/kube/informer.h"
#include "protocol/kube/work_queue.h"

namespace penstock::cluster {

using protocol::kube::ApiResponse;
using protocol::kube::Informer;
using protocol::kube::WorkQueue;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMostOfScheduler = 300;
constexpr base::Duration kEnds = 1min;  // a pod has 10 s, and then is killed
constexpr base::Duration kEndsInTime = 15s;
/// Of questions about Nodes: where many pods end, the last answer comes within seconds.
constexpr WorkQueue::Options kQuestions{.per_second = 100, .burst = 50, .at_once = 4};
constexpr const char* kDoesNotEnd =
    "terminating for over a minute: the node's kubelet does not respond, or cannot end the pod";
constexpr const char* kNotReady =
    "terminating, and the kubelet does not report the node as ready: it does not respond, or "
    "cannot end the pod";
constexpr const char* kNoNode = "terminating, and there is no Node of this name any more";

/// The node for which the DaemonSet controller made a pod, also while it is not scheduled there
/// (pkg/controller/daemon/util, ReplaceDaemonSetPodNodeNameNodeAffinity).
std::string NodeOf(const Json& pod) {
  if (std::string node = TextAt(pod, "/spec/nodeName"); !node.empty()) return node;
  for (const Json& term :
       ListAt(pod,
              "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/"
              "nodeSelectorTerms"))
    for (const Json& field : ListAt(term, "/matchFields"))
      if (TextAt(field, "/key") == "metadata.name") return TextAt(field, "/values/0");
  return "";
}

/// Of a pod that no node has taken: "0/4 nodes are available: ...".
std::string WhyNotScheduled(const Json& pod) {
  for (const Json& condition : ListAt(pod, "/status/conditions"))
    if (TextAt(condition, "/type") == "PodScheduled" && TextAt(condition, "/status") == "False")
      return "not scheduled: " +
             base::Printable(TextAt(condition, "/message").substr(0, kMostOfScheduler));
  return "";
}

Json ReducedPodOfSet(const Json& pod) {
  const RolloutPod found = RolloutPodOf(ReducedDriverPod(pod), {});
  std::string text = found.pod.trouble.empty() ? WhyNotScheduled(pod) : found.pod.trouble;
  if (found.pod.terminating) text = "terminating";
  if (text.empty()) text = "not ready";
  return {{"metadata",
           {{"name", TextAt(pod, "/metadata/name")},
            {"namespace", TextAt(pod, "/metadata/namespace")}}},
          {"node", NodeOf(pod)},
          {"terminating", found.pod.terminating},
          {"trouble", found.pod.ready ? "" : std::move(text)}};
}

}  // namespace

struct PodTroubles::State : std::enable_shared_from_this<State> {
  State(protocol::kube::Api& a, std::string space, std::string i, Callbacks c)
      : api(a), namespace_name(std::move(space)), instance(std::move(i)), callbacks(std::move(c)) {}

  using Done = std::function<void(Status)>;

  void Begin() {
    questions.emplace(
        api.executor(), kQuestions,
        [this](const std::string& name, const Done& done) { AskForNode(name, done); });
  }

  protocol::kube::Api& api;
  const std::string namespace_name, instance;
  const Callbacks callbacks;
  std::optional<WorkQueue> questions;  // by the name of the pod
  std::optional<Informer> pods;
  bool failed = false;  // to read the pods
  struct Pod {
    std::string node, trouble;                         // without trouble it is ready
    std::optional<base::TimePoint> terminating_since;  // by our clock: its node's may be another
    std::string node_trouble;                          // of one that ends: why its node cannot
    std::optional<base::TimePoint> asked;              // of its Node last
    bool unanswered = false;  // of one that ended already: its Node's state
  };
  std::map<std::string, Pod> found;  // by name

  void Seen(const Json& pod) {
    const std::string name = TextAt(pod, "/metadata/name");
    const auto [at, is_new] = found.try_emplace(name);
    Pod& known = at->second;
    known.node = TextAt(pod, "/node");
    known.trouble = TextAt(pod, "/trouble");
    if (pod.value("terminating", false)) {
      if (!known.terminating_since) known.terminating_since = Now();
      if (!known.node.empty()) AskSoon(name, known, is_new);
    }
    callbacks.changed();
  }

  /// The time since when a pod ends is lost when this operator starts, and those in objects are of
  /// other machines' clocks; but a Node says whether its kubelet responds. What happens to a Node
  /// shows in its pods, too: each change of the pod is a reason to ask, once in some time. A pod
  /// that was seen before has this time to end: a roll-out that goes well asks for no Node.
  void AskSoon(const std::string& name, Pod& pod, bool is_new) {
    if (is_new) {
      pod.unanswered = true;
      return questions->Add(name);
    }
    const base::TimePoint last = pod.asked.value_or(*pod.terminating_since);
    questions->AddAfter(name, last + kEndsInTime - Now());
  }

  void AskForNode(const std::string& name, const Done& done) {
    const auto pod = found.find(name);
    if (pod == found.end() || !pod->second.terminating_since) return done({});
    if (pod->second.asked && Now() - *pod->second.asked < kEndsInTime) return done({});
    pod->second.asked = Now();
    api.Do(protocol::kube::Get({"", "v1", "nodes"}, "", pod->second.node),
           base::IfAlive(this, [name, done](State& self, const Result<ApiResponse>& answer) {
             self.Answered(name, TroubleOfNode(protocol::kube::Parse(answer)));
             done({});
           }));
  }

  void Answered(const std::string& name, std::string trouble) {
    const auto known = found.find(name);
    if (known == found.end()) return;
    known->second.unanswered = false;
    known->second.node_trouble = std::move(trouble);
    callbacks.changed();
  }

  static std::string TroubleOfNode(const Result<Json>& node) {
    if (!node.ok()) return node.error().code() == Code::kNotFound ? kNoNode : "";
    const RolloutNode found = RolloutNodeOf(ReducedDriverNode(*node, {}), {}, {});
    return found.not_ready_since ? kNotReady : "";
  }

  bool HasRead() const {
    if (!pods) return true;
    return failed || (pods->synced() && std::ranges::none_of(found, [](const auto& one) {
                        return one.second.unanswered;
                      }));
  }

  base::TimePoint Now() const { return api.executor().clock().Now(); }

  bool IsEnding(const Pod& pod) const {
    if (!pod.terminating_since || !pod.node_trouble.empty()) return false;
    const base::Duration left = *pod.terminating_since + kEnds - Now();
    if (left > 0s) callbacks.due_after(left);
    return left > 0s;
  }

  /// A pod that does not end may be ready: its kubelet said so last.
  std::string TroubleOf(const Pod& pod) const {
    if (!pod.terminating_since || IsEnding(pod)) return pod.trouble;
    return pod.node_trouble.empty() ? kDoesNotEnd : pod.node_trouble;
  }

  void Gone(const std::string& name) {
    if (found.erase(name) > 0) callbacks.changed();
  }

  void Start() {
    Informer::Options options;
    options.resource = {"", "v1", "pods"};
    options.namespace_name = namespace_name;
    options.label_selector = std::string(kSelector) + ",app.kubernetes.io/instance=" + instance;
    options.reduce = ReducedPodOfSet;
    pods.emplace(
        api, options,
        Informer::Handlers{.changed = [this](const Json& pod) { Seen(pod); },
                           .removed = [this](const auto&, const auto& name) { Gone(name); },
                           .synced = callbacks.changed,
                           .problem =
                               [this](const Status& why) {
                                 failed = !why.ok();
                                 callbacks.problem(why);
                               }});
    pods->Start();
  }
};

PodTroubles::PodTroubles(protocol::kube::Api& api, std::string namespace_name, std::string instance,
                         Callbacks callbacks)
    : state_(std::make_shared<State>(api, std::move(namespace_name), std::move(instance),
                                     std::move(callbacks))) {
  state_->Begin();
}

PodTroubles::~PodTroubles() = default;

void PodTroubles::Read(bool wanted) {
  if (wanted == state_->pods.has_value()) return;
  if (wanted) return state_->Start();
  state_->pods.reset();
  state_->found.clear();
  state_->failed = false;
  state_->callbacks.problem({});
}

bool PodTroubles::has_read() const { return state_->HasRead(); }

std::vector<std::string> PodTroubles::troubles() const {
  std::vector<std::string> sorted;
  for (const auto& [name, pod] : state_->found) {
    if (state_->IsEnding(pod)) continue;
    if (const std::string trouble = state_->TroubleOf(pod); !trouble.empty())
      sorted.push_back((pod.node.empty() ? "pod " + name : pod.node) + ": " + trouble);
  }
  std::ranges::sort(sorted);
  return sorted;
}

std::map<std::string, std::string> PodTroubles::WhyNone() const {
  std::map<std::string, std::string> why;
  std::set<std::string> served;
  for (const auto& [name, pod] : state_->found) {
    const std::string trouble = state_->TroubleOf(pod);
    if (trouble.empty())
      served.insert(pod.node);
    else if (!pod.node.empty())
      why.try_emplace(pod.node, trouble);
  }
  for (const std::string& node : served) why.erase(node);
  return why;
}

}  // namespace penstock::cluster
