// Each piece of work (labels, NodeFeature, NodeState, node status) is level-triggered and fails
// independently: a write that fails does not block the others.
#include "adapter/cluster/cluster_adapter.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "adapter/cluster/client_labels.h"
#include "adapter/cluster/configuration_watch.h"
#include "adapter/cluster/counters_watch.h"
#include "adapter/cluster/former_writes.h"
#include "adapter/cluster/node_labels.h"
#include "adapter/cluster/node_state_object.h"
#include "adapter/cluster/node_status.h"
#include "api/node_state.h"
#include "base/core/strings.h"
#include "protocol/kube/events.h"
#include "protocol/kube/object_reconciler.h"
#include "protocol/kube/reconcile_loop.h"
#include "view/node_events.h"

namespace penstock::adapter::cluster {

using api::Switch;
using protocol::kube::ApiResponse;
using protocol::kube::Json;
using protocol::kube::kRereadInterval;
using protocol::kube::ObjectReconciler;
using protocol::kube::ReconcileLoop;
using namespace std::chrono_literals;

namespace {

constexpr char kLabels[] = "labels", kFeature[] = "NodeFeature", kNodeState[] = "NodeState",
               kNodeStatus[] = "node status", kClients[] = "clients", kReady[] = "ready condition";
constexpr std::string_view kClientsManager = "penstock-clients";
constexpr std::string_view kHostFeatures = "feature.node.kubernetes.io/";

constexpr base::Duration kSettle = 200ms;  // NodeState: further changes usually follow
constexpr base::Duration kSpacing = 1s;    // NodeState: minimum time between two writes
constexpr base::Duration kBeginning = 1s;  // after a start, allocators are open by then or not soon
constexpr base::Duration kOfTheStart = 5s;     // times this early count as start times
constexpr base::Duration kStarting = 30s;      // what an agent has not decided by then is not ready
constexpr base::Duration kNumbersAreNew = 3s;  // older ones are left to the kubelet's own update
constexpr base::Duration kNfdFollows = 3min;   // NFD reads its files once a minute by default

/// Whether a NodeFeature object carries the labels to the Node.
enum class Carried { kUnknown, kNo, kYes };

/// Whether the error is transient: there is no answer now, which says nothing about the request.
bool IsTransient(const Status& status) {
  if (status.ok()) return false;
  const Code code = status.error().code();
  return code == Code::kUnavailable || code == Code::kDeadlineExceeded ||
         code == Code::kResourceExhausted || code == Code::kAborted ||
         code == Code::kUnauthenticated || code == Code::kDataLoss;
}

Status NothingTried() { return base::Error(Code::kCancelled, "nothing to do"); }

Status NotInstalled(const Status& status, const std::string& kind, const std::string& what_to_do) {
  if (status.ok() || status.error().code() != Code::kNotFound) return status;
  return base::Error(Code::kNotFound, "this cluster has no " + kind + ": " + what_to_do);
}

}  // namespace

bool ClusterUpdate::operator==(const ClusterUpdate& other) const {
  const auto last = [](const auto& reported) {
    return reported.empty() ? 0 : reported.back().number + 1;
  };
  return labels == other.labels && annotations == other.annotations && known == other.known &&
         pause == other.pause && last(notices) == last(other.notices) && report == other.report;
}

struct ClusterAdapter::State : std::enable_shared_from_this<State> {
  State(protocol::kube::Api& a, Options o, Callbacks c)
      : api(a),
        options(std::move(o)),
        callbacks(std::move(c)),
        carried(options.labels.node_feature == Switch::kOff ? Carried::kNo : Carried::kUnknown),
        work(api.executor(), [this] { ReportState(); }),
        watch(api, options.node, Where(options),
              {.node = [this] { NodeChanged(); },
               .remote = [this](const api::RemoteConfig& remote) { callbacks.remote(remote); },
               .problem =
                   [this](const std::string& what, ReconcileLoop::Problem problem) {
                     work.Report(what, std::move(problem));
                   }}),
        feature(api, {.resource = NodeFeatures(),
                      .namespace_name = options.namespace_name,
                      .name = NodeFeatureName(options.node),
                      .content = "/spec/labels",
                      .manager = std::string(kObjectsManager)}),
        node_state(api, {.resource = {std::string(api::kNodeStateGroup),
                                      std::string(api::kNodeStateVersion),
                                      std::string(api::kNodeStatePlural)},
                         .name = options.node,
                         .content = "/status",
                         .manager = std::string(kObjectsManager)}),
        former(api, options.node, options.namespace_name,
               [this](const std::string& what, ReconcileLoop::Problem problem) {
                 work.Report(what, std::move(problem));
               }),
        recorder(api, "penstock", options.node),
        counters(api, options.counters_map,
                 {.reported =
                      [this](const api::RemoteConfig& remote) {
                        if (callbacks.counters) callbacks.counters(remote);
                      },
                  .problem =
                      [this](ReconcileLoop::Problem problem) {
                        work.Report("counters", std::move(problem));
                      }}),
        pods(api, options.node, options.holder_labels,
             {.changed =
                  [this](std::shared_ptr<const PodsOfNode> now) {
                    if (callbacks.pods) callbacks.pods(std::move(now));
                  },
              .problem =
                  [this](ReconcileLoop::Problem problem) {
                    work.Report("pods", std::move(problem));
                  }}) {
    work.Add({.name = kLabels,
              .work = [this](const Done& done) { WriteLabels(done); },
              .settle = 10ms,
              .spacing = 100ms});
    work.Add({.name = kFeature,
              .work = [this](const Done& done) { WriteFeature(done); },
              .settle = 10ms,
              .may_be_missing = options.labels.node_feature == Switch::kAuto});
    work.Add({.name = kNodeState,
              .work = [this](const Done& done) { WriteNodeState(done); },
              .settle = kSettle,
              .spacing = kSpacing,
              .may_be_missing = options.config.node_state == Switch::kAuto});
    work.Add({.name = kNodeStatus, .work = [this](const Done& done) { WriteNodeStatus(done); }});
    work.Add({.name = kReady,
              .work = [this](const Done& done) { WriteReady(done); },
              .settle = 10ms,
              .spacing = 1s});
    work.Add({.name = kClients, .work = [this](const Done& done) { WriteClients(done); }});
  }

  using Done = ReconcileLoop::Done;

  static api::ConfigMapConfig Where(const Options& options) {
    api::ConfigMapConfig where = options.config.config_map;
    if (where.namespace_name.empty()) where.namespace_name = options.namespace_name;
    return where;
  }

  void Start() {
    ReportState();
    watch.Start();
    counters.Start();
    pods.Start();
  }

  base::TimePoint Now() const { return api.executor().clock().Now(); }

  // Inputs.

  void Show(ClusterUpdate now) {
    if (!now.labels && update) now.labels = update->labels;
    if (update && *update == now) return;
    update = std::move(now);
    if (options.labels.node != Switch::kOff) work.Soon(kClients);
    // Before the devices are read, nothing can be concluded.
    if (!update->labels && !update->known) return;
    if (!begun) begun = Now();
    ReportNfd();
    WriteAll();
    ReportEvents();
  }

  /// Reports whether NFD labels this node with features that it found itself. Labels from our own
  /// NodeFeature object do not count.
  void ReportNfd() {
    const ObservedNode* node = watch.node();
    const bool may_carry = carried != Carried::kNo;
    if (node == nullptr || (may_carry && !begun)) return;
    const bool labels = std::ranges::any_of(node->nfd, [&](const std::string& key) {
      return key.starts_with(kHostFeatures) &&
             !(may_carry && update->labels && update->labels->contains(key));
    });
    if (nfd == labels) return;
    nfd = labels;
    callbacks.nfd(labels);
  }

  void ReportRequests(const ObservedNode& node) {
    std::map<std::string, std::string> now;
    const auto add = [&](const std::string& key) {
      if (const auto label = node.labels.find(key); label != node.labels.end()) now.insert(*label);
    };
    for (const std::string& key : options.requests) add(key);
    for (const auto& [key, paused] : options.clients) add(key);
    if (requests == now || !callbacks.requests) return;
    requests = now;
    callbacks.requests(now);
  }

  void WriteAll() {
    work.Soon(kFeature);
    work.Soon(kLabels);
    work.Soon(kReady);
    if (options.config.node_state == Switch::kOff) return;
    if (Now() - *begun < kBeginning) {
      work.After(kNodeState, kBeginning - (Now() - *begun));
    } else {
      work.Soon(kNodeState);
    }
  }

  void ShowKubeletHas(const adapter::kubelet::KubeletAmounts& resources) {
    if (options.config.node_status == Switch::kOff) return;
    if (resources.empty()) return amounts.reset();
    amounts = resources;
    amounts_at = Now();
    work.Soon(kNodeStatus);
  }

  void NodeChanged() {
    ReportState();
    if (const ObservedNode* node = watch.node()) {
      ReportRequests(*node);
      ReportNfd();
      if (amounts) work.Soon(kNodeStatus);
      if (update && options.labels.node != Switch::kOff) work.Soon(kClients);
      const auto seen = std::tie(node->uid, node->labels, node->own, node->nfd, node->ready);
      if (known &&
          std::tie(known->uid, known->labels, known->own, known->nfd, known->ready) == seen)
        return;
      known = *node;
    }
    if (begun) {
      WriteAll();
      ReportEvents();
    }
  }

  // Writes.

  NodeLabelSet DesiredLabels() const {
    NodeLabelSet labels = *update->labels;
    if (nfd.value_or(false) && options.labels.host_features == Switch::kAuto)
      std::erase_if(labels,
                    [](const auto& label) { return label.first.starts_with(kHostFeatures); });
    return labels;
  }

  void WriteLabels(const Done& done) {
    const ObservedNode* node = watch.node();
    if (!begun || node == nullptr) return done({});
    if (options.labels.node == Switch::kOff) return TakeLabelsBack(*node, done);
    if (!update->labels || carried == Carried::kUnknown) return done({});
    if (!watch.owners_known()) return RequestOwners(done);
    const LabelPlan plan =
        reconciler.Decide(*node, DesiredLabels(),
                          carried == Carried::kYes && options.labels.node == Switch::kAuto, Now());
    work.Report("contested labels",
                {plan.contested.empty()
                     ? ""
                     : "other field managers change the agent's labels: " + plan.contested});
    ReportOtherValues(plan.other_values);
    if (plan.again) work.After(kLabels, *plan.again);
    if (!plan.write && !AnnotationsDiffer(*node)) return done({});
    Json object = NodeWith(*node, plan.set);
    for (const auto& [key, value] : update->annotations)
      if (!value.empty()) object["metadata"]["annotations"][key] = value;
    api.Do(protocol::kube::Apply({"", "v1", "nodes"}, "", object, kLabelsManager),
           [weak = weak_from_this(), set = plan.set,
            annotations = Annotations{node->uid, update->annotations}, done](const auto& answer) {
             const auto self = weak.lock();
             if (!self) return;
             if (answer.ok()) self->annotated = annotations;
             self->LabelsWritten(set, answer, done);
           });
  }

  /// Of labels left to NFD. Where a NodeFeature is to carry them, that is what has to be repaired.
  void ReportOtherValues(const std::string& keys) {
    if (keys.empty() || options.labels.node_feature != Switch::kOff) {
      other_values_since.reset();
      return work.Report("labels of NFD", {});
    }
    if (!other_values_since) other_values_since = Now();
    const base::Duration left = *other_values_since + kNfdFollows - Now();
    if (left > base::Duration{}) return work.After(kLabels, left);
    work.Report("labels of NFD", {"NFD publishes other values than the agent's of " + keys +
                                      ": delete the NodeFeature (" +
                                      FeatureDeletion(options.node, options.namespace_name) +
                                      "), the file in features.d or the rule that they come from",
                                  true});
  }

  /// What our field manager owns is then these labels alone. The uid prevents the apply from
  /// creating a Node that was just deleted.
  static Json NodeWith(const ObservedNode& node, const NodeLabelSet& labels) {
    return {{"apiVersion", "v1"},
            {"kind", "Node"},
            {"metadata", {{"name", node.name}, {"uid", node.uid}, {"labels", labels}}}};
  }

  /// Those that an agent wrote before labels.node was off, as those of GPU Feature Discovery go
  /// with its object or file. A right that was taken away with the setting is not waited for: at
  /// rest nothing is asked of the server.
  void TakeLabelsBack(const ObservedNode& node, const Done& done) {
    if (labels_taken_back) return done({});
    if (!watch.owners_known()) return RequestOwners(done);
    const LabelPlan plan = reconciler.Decide(node, {}, false, Now());
    if (!plan.write) return LabelsTakenBack({}, done);
    api.Do(protocol::kube::Apply({"", "v1", "nodes"}, "", NodeWith(node, plan.set), kLabelsManager),
           [weak = weak_from_this(), done](const auto& answer) {
             const auto self = weak.lock();
             if (!self) return;
             if (!answer.ok() && answer.error().code() != Code::kPermissionDenied)
               return done(answer.error());
             self->LabelsTakenBack(answer.ok() ? "" : answer.error().message(), done);
           });
  }

  void LabelsTakenBack(const std::string& refused, const Done& done) {
    labels_taken_back = true;
    if (!refused.empty())
      work.Report("labels that stay",
                  {"labels.node is off, and labels that the agent wrote before stay; `kubectl "
                   "penstock cleanup --node " +
                       options.node + "` removes them: " + refused,
                   true});
    done({});
  }

  /// One that another client changed is restored with the next write: it decides nothing.
  bool AnnotationsDiffer(const ObservedNode& node) const {
    if (annotated && annotated->uid == node.uid) return annotated->wanted != update->annotations;
    return std::ranges::any_of(update->annotations, [&node](const auto& one) {
      const auto shown = node.annotations.find(one.first);
      return one.second != (shown == node.annotations.end() ? "" : shown->second);
    });
  }

  void RequestOwners(const Done& done) {
    api.Do(protocol::kube::Get({"", "v1", "nodes"}, "", options.node),
           [weak = weak_from_this(), done](const auto& answer) {
             const auto self = weak.lock();
             if (!self) return;
             const auto node = protocol::kube::Parse(answer);
             if (!node.ok())
               return done(node.error().code() == Code::kNotFound
                               ? Status()
                               : Status(node.error()));  // the watch reports the deletion
             self->watch.Adopt(*node);
             if (self->watch.owners_known()) return self->WriteLabels(done);
             self->work.Soon(kLabels);
             done({});
           });
  }

  void LabelsWritten(const NodeLabelSet& set, const base::Result<ApiResponse>& answer,
                     const Done& done) {
    if (!answer.ok()) return done(answer.error());
    reconciler.Wrote(set, Now());
    if (const auto node = protocol::kube::Parse(answer); node.ok()) watch.Adopt(*node);
    done({});
  }

  void WriteClients(const Done& done) {
    const ObservedNode* node = watch.node();
    if (!update || !update->pause || node == nullptr) return done({});
    const ClientLabels::Plan plan = clients.Decide(*node, *update->pause, Now());
    if (plan.again) work.After(kClients, *plan.again);
    if (plan.set.empty()) return done({});
    clients.Sent(plan.set);
    // With the version, no value is replaced that a user has written meanwhile.
    const Json patch = {
        {"metadata",
         {{"uid", node->uid}, {"resourceVersion", node->version}, {"labels", plan.set}}}};
    api.Do(protocol::kube::Patch({"", "v1", "nodes"}, "", options.node, protocol::kube::kMergePatch,
                                 patch, kClientsManager),
           [weak = weak_from_this(), set = plan.set, done](const auto& answer) {
             if (const auto self = weak.lock()) self->ClientsWritten(set, answer, done);
           });
  }

  void ClientsWritten(const NodeLabelSet& set, const base::Result<ApiResponse>& answer,
                      const Done& done) {
    if (!answer.ok()) return done(answer.error());
    clients.Wrote(set, Now());
    if (const auto node = protocol::kube::Parse(answer); node.ok()) watch.Adopt(*node);
    work.Soon(kClients);  // what is wanted may be different by now
    done({});
  }

  std::string NodeUid() const { return watch.node() == nullptr ? "" : watch.node()->uid; }
  /// Objects that the Node owns are written once the Node is known, or once it is known that
  /// reading it is forbidden.
  bool OwnerKnown() const { return watch.node() != nullptr || watch.node_forbidden(); }

  void WriteFeature(const Done& done) {
    if (options.labels.node_feature == Switch::kOff) {
      const ObservedNode* node = watch.node();
      return node == nullptr ? done({}) : former.TakeFeatureBack(*node, done);
    }
    if (!begun || !update->labels || !OwnerKnown()) return done({});
    work.After(kFeature, kRereadInterval);
    feature.Reconcile(
        [this](const Json*) { return NodeFeatureOf(options.node, NodeUid(), DesiredLabels()); },
        [this, done](const Status& status) {
          if (!IsTransient(status)) SetCarried(status.ok() ? Carried::kYes : Carried::kNo);
          done(
              NotInstalled(status, "NodeFeature", "install NFD, or set labels.nodeFeature to off"));
        });
  }

  void SetCarried(Carried now) {
    if (std::exchange(carried, now) != now) work.Soon(kLabels);
  }

  void WriteNodeState(const Done& done) {
    if (!begun || !OwnerKnown()) return done({});
    work.After(kNodeState, kRereadInterval);
    node_state.Reconcile(
        [this](const Json* found) { return WantedNodeState(found); },
        [this, done](const Status& status) {
          if (!status.ok() && !IsTransient(status)) Remember(nullptr);
          done(NotInstalled(status, "NodeState",
                            "apply the CRD of the chart, or set cluster.nodeState to off"));
        });
  }

  Json WantedNodeState(const Json* found) {
    Remember(found);
    api::Report report = *update->report;
    for (api::AllocatorReport& allocator : report.allocators)
      if (allocator.name == "cluster") allocator = OwnAllocator(true);
    Json object = OwnedNodeState(report, NodeUid());
    times.PutInto(object, Now() - *begun < kOfTheStart);
    return object;
  }

  /// Restores what was reported before this agent started; null: unknown.
  void Remember(const Json* found) {
    if (std::exchange(remembered, true)) return;
    if (found != nullptr) {
      times.Remember(*found);
      if (const auto before = api::ReportOf(*found); before.ok()) events.Remember(*before);
    }
    ReportEvents();
  }

  void WriteNodeStatus(const Done& done) {
    const ObservedNode* node = watch.node();
    if (!amounts || node == nullptr) return done(NothingTried());
    const auto patch = StatusPatch(node->numbers, *amounts);
    if (!patch || Now() - amounts_at > kNumbersAreNew) {
      amounts.reset();
      return done(NothingTried());
    }
    api.Do(
        protocol::kube::Patch({"", "v1", "nodes"}, "", options.node,
                              protocol::kube::kStrategicMergePatch, *patch, "penstock", "status"),
        [weak = weak_from_this(), sent = *amounts, done](const auto& answer) {
          if (const auto self = weak.lock()) self->NodeStatusWritten(sent, answer, done);
        });
  }

  /// A condition that is true stays so while an agent that has just started has not decided
  /// everything yet: a restart of the agent is no fault of the node.
  void WriteReady(const Done& done) {
    const ObservedNode* node = watch.node();
    if (!begun || node == nullptr) return done(NothingTried());
    if (options.config.ready_condition == Switch::kOff)
      return former.TakeConditionBack(*node, done);
    const auto& conditions = update->report->conditions;
    const auto wanted =
        std::ranges::find(conditions, "AcceleratorsReady", &api::ConditionReport::type);
    if (wanted == conditions.end()) return done(NothingTried());
    const bool failed = std::ranges::any_of(
        update->report->validation, [](const auto& step) { return step.state == "failed"; });
    const auto running = Now() - *begun;
    if (!wanted->status && !failed && running < kStarting && node->ready &&
        node->ready->status == "True") {
      work.After(kReady, kStarting - running);
      return done(NothingTried());
    }
    const auto patch =
        ConditionPatch(node->ready, *wanted, base::FormatTime(api.executor().clock().Wall()));
    if (!patch) return done({});
    api.Do(protocol::kube::Patch({"", "v1", "nodes"}, "", options.node,
                                 protocol::kube::kStrategicMergePatch, *patch, kConditionManager,
                                 "status"),
           [weak = weak_from_this(), done](const auto& answer) {
             const auto self = weak.lock();
             if (!self) return;
             if (!answer.ok()) return done(answer.error());
             if (const auto seen = protocol::kube::Parse(answer); seen.ok())
               self->watch.Adopt(*seen);
             done({});
           });
  }

  void NodeStatusWritten(const adapter::kubelet::KubeletAmounts& sent,
                         const base::Result<ApiResponse>& answer, const Done& done) {
    const bool refused = !answer.ok() && answer.error().code() == Code::kPermissionDenied;
    if ((answer.ok() || refused) && amounts == sent) amounts.reset();
    if (!answer.ok()) return done(answer.error());
    if (const auto node = protocol::kube::Parse(answer); node.ok()) watch.Adopt(*node);
    done({});
  }

  void ReportEvents() {
    if (options.config.events == Switch::kOff || !begun || !OwnerKnown()) return;
    if (!remembered && options.config.node_state != Switch::kOff)
      return;  // the earlier report is still being read
    const protocol::kube::ObjectReference about{"v1", "Node", "", options.node, NodeUid()};
    for (const view::NodeEvent& event : events.Next(*update->report, update->notices))
      event.warning ? recorder.Warning(about, event.reason, event.message)
                    : recorder.Normal(about, event.reason, event.message);
  }

  /// `lasting`: the state as written into the NodeState object, without transient problems: a short
  /// outage of the API server is not worth a write after it.
  api::AllocatorReport OwnAllocator(bool lasting) const {
    const bool reads = lasting || (watch.node() != nullptr && !work.problems().contains("node"));
    api::AllocatorReport report{.name = "cluster", .state = reads ? "open" : "waiting"};
    std::vector<std::string> reasons;
    for (const auto& [what, problem] : work.problems())
      if (problem.lasting || !lasting) reasons.push_back(problem.text);
    if (reasons.empty() && !reads) reasons.push_back("reading this Node from the API server");
    report.reason = base::Join(reasons, "; ");
    return report;
  }

  void ReportState() {
    const api::AllocatorReport report = OwnAllocator(false);
    if (reported && reported->state == report.state && reported->reason == report.reason) return;
    reported = report;
    callbacks.state(report);
  }

  protocol::kube::Api& api;
  const Options options;
  const Callbacks callbacks;

  std::optional<ClusterUpdate> update;
  std::optional<base::TimePoint> begun;  // first update after the devices were read
  std::optional<adapter::kubelet::KubeletAmounts> amounts;
  base::TimePoint amounts_at{};
  std::optional<ObservedNode> known;  // the last Node that was acted upon
  std::optional<bool> nfd;
  std::optional<std::map<std::string, std::string>> requests;  // as reported last
  std::optional<api::AllocatorReport> reported;
  struct Annotations {
    std::string uid;  // of the Node
    std::map<std::string, std::string> wanted;
  };
  std::optional<Annotations> annotated;  // as written last
  Carried carried;
  bool labels_taken_back = false;  // where labels.node is off: there is nothing to do any more
  std::optional<base::TimePoint> other_values_since;  // that labels left to NFD have
  bool remembered = false;

  NodeLabelReconciler reconciler;
  ClientLabels clients{options.clients};
  StartTimes times;
  view::ReportEvents events;
  ReconcileLoop work;
  ConfigurationWatch watch;
  ObjectReconciler feature, node_state;
  FormerWrites former;
  protocol::kube::EventRecorder recorder;
  CountersWatch counters;
  PodLabelWatch pods;
};

ClusterAdapter::ClusterAdapter(protocol::kube::Api& api, Options options, Callbacks callbacks)
    : state_(std::make_shared<State>(api, std::move(options), std::move(callbacks))) {}

ClusterAdapter::~ClusterAdapter() = default;

void ClusterAdapter::Start() { state_->Start(); }

void ClusterAdapter::Show(ClusterUpdate update) { state_->Show(std::move(update)); }

void ClusterAdapter::ShowKubeletHas(const adapter::kubelet::KubeletAmounts& resources) {
  state_->ShowKubeletHas(resources);
}

}  // namespace penstock::adapter::cluster
