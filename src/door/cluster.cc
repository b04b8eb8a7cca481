// Pieces of work, each level-triggered and each alone with its failures: what cannot be written keeps nothing else from being written.
#include "door/cluster.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "api/node_state.h"
#include "base/core/strings.h"
#include "door/cluster_counters.h"
#include "door/cluster_events.h"
#include "door/cluster_labels.h"
#include "door/cluster_object.h"
#include "door/cluster_state.h"
#include "door/cluster_watch.h"
#include "door/cluster_work.h"
#include "door/node_status.h"
#include "edge/kube/events.h"

namespace penstock::door {

using api::Switch;
using base::Code;
using base::Status;
using edge::kube::Answer;
using edge::kube::Json;
using namespace std::chrono_literals;

namespace {

constexpr char kLabels[] = "labels", kFeature[] = "NodeFeature", kNodeState[] = "NodeState", kNodeStatus[] = "node status";
constexpr std::string_view kHostFeatures = "feature.node.kubernetes.io/";

constexpr base::Duration kSettle = 200ms;      // of the node's object: one change seldom comes alone
constexpr base::Duration kSpacing = 1s;        // between two writes of it
constexpr base::Duration kBeginning = 1s;      // of an agent: by then its doors are open or will not be soon
constexpr base::Duration kOfTheStart = 5s;     // times that young are those of our start
constexpr base::Duration kLookAgain = 10min;   // at objects of ours
constexpr base::Duration kNumbersAreNew = 3s;  // then the kubelet's own tick has to do

/// How the labels reach the Node.
enum class Carried { kUnknown, kNo, kYes };

/// Says nothing about what was asked, only that there was no answer now.
bool IsPassing(const Status& status) {
  if (status.ok()) return false;
  const Code code = status.error().code();
  return code == Code::kUnavailable || code == Code::kDeadlineExceeded || code == Code::kResourceExhausted || code == Code::kAborted ||
         code == Code::kUnauthenticated || code == Code::kDataLoss;
}

Status NothingTried() { return base::Error(Code::kCancelled, "nothing to do"); }

Status NotInstalled(const Status& status, const std::string& kind, const std::string& what_to_do) {
  if (status.ok() || status.error().code() != Code::kNotFound) return status;
  return base::Error(Code::kNotFound, "this cluster has no " + kind + ": " + what_to_do);
}

}  // namespace

bool ClusterNews::operator==(const ClusterNews& other) const {
  const auto last = [](const auto& told) { return told.empty() ? 0 : told.back().number + 1; };
  return labels == other.labels && last(notices) == last(other.notices) && ToJson(report) == ToJson(other.report);
}

struct ClusterDoor::State : std::enable_shared_from_this<State> {
  State(edge::kube::Api& a, Options o, Callbacks c)
      : api(a),
        options(std::move(o)),
        callbacks(std::move(c)),
        carried(options.labels.node_feature == Switch::kOff ? Carried::kNo : Carried::kUnknown),
        work(api.executor(), [this] { TellState(); }),
        watch(api, options.node, Where(options),
              {.node = [this] { NodeChanged(); },
               .wished = [this](const WishedConfig& wish) { callbacks.wished(wish); },
               .problem = [this](const std::string& what, ClusterWork::Problem problem) { work.Say(what, std::move(problem)); }}),
        feature(api, {.resource = {"nfd.k8s-sigs.io", "v1alpha1", "nodefeatures"},
                      .namespace_name = options.namespace_name,
                      .name = "penstock-features-for-" + options.node,
                      .content = "/spec/labels"}),
        node_state(
            api, {.resource = {std::string(api::kNodeStateGroup), std::string(api::kNodeStateVersion), std::string(api::kNodeStatePlural)},
                  .name = options.node,
                  .content = "/status"}),
        recorder(api, "penstock", options.node),
        counters(api, options.counters_map,
                 {.told =
                      [this](const WishedConfig& wish) {
                        if (callbacks.counters) callbacks.counters(wish);
                      },
                  .problem = [this](ClusterWork::Problem problem) { work.Say("counters", std::move(problem)); }}),
        pods(api, options.node, options.holder_labels,
             {.changed =
                  [this](std::shared_ptr<const PodsOfNode> now) {
                    if (callbacks.pods) callbacks.pods(std::move(now));
                  },
              .problem = [this](ClusterWork::Problem problem) { work.Say("pods", std::move(problem)); }}) {
    work.Add({.name = kLabels, .work = [this](const Done& done) { WriteLabels(done); }, .settle = 10ms, .spacing = 100ms});
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
  }

  using Done = ClusterWork::Done;

  static api::ConfigMapConfig Where(const Options& options) {
    api::ConfigMapConfig where = options.config.config_map;
    if (where.namespace_name.empty()) where.namespace_name = options.namespace_name;
    return where;
  }

  void Start() {
    TellState();
    watch.Start();
    counters.Start();
    pods.Start();
  }

  base::TimePoint Now() const { return api.executor().clock().Now(); }

  // What comes in.

  void Show(ClusterNews now) {
    if (!now.labels && news) now.labels = news->labels;
    if (news && *news == now) return;
    news = std::move(now);
    if (!news->labels) return;  // the first look is not over: nothing is known, and nothing is to be concluded from that
    if (!begun) begun = Now();
    TellNfd();
    WriteAll();
    TellEvents();
  }

  /// Whether an NFD labels this node with what it found itself: what it has from our own object does not count.
  void TellNfd() {
    const NodeView* node = watch.node();
    const bool may_carry = carried != Carried::kNo;
    if (node == nullptr || (may_carry && !begun)) return;
    const bool labels = std::any_of(node->nfd.begin(), node->nfd.end(), [&](const std::string& key) {
      return key.starts_with(kHostFeatures) && !(may_carry && news->labels->contains(key));
    });
    if (nfd == labels) return;
    nfd = labels;
    callbacks.nfd(labels);
  }

  void WriteAll() {
    if (options.labels.node_feature != Switch::kOff) work.Soon(kFeature);
    work.Soon(kLabels);
    if (options.config.node_state == Switch::kOff) return;
    if (Now() - *begun < kBeginning) {
      work.After(kNodeState, kBeginning - (Now() - *begun));
    } else {
      work.Soon(kNodeState);
    }
  }

  void ShowKubeletHas(const KubeletAmounts& resources) {
    if (options.config.node_status == Switch::kOff) return;
    if (resources.empty()) return amounts.reset();
    amounts = resources;
    amounts_at = Now();
    work.Soon(kNodeStatus);
  }

  void NodeChanged() {
    TellState();
    if (const NodeView* node = watch.node()) {
      TellNfd();
      if (amounts) work.Soon(kNodeStatus);
      const auto seen = std::tie(node->uid, node->labels, node->ours, node->nfd);
      if (known && std::tie(known->uid, known->labels, known->ours, known->nfd) == seen) return;
      known = *node;
    }
    if (begun) {
      WriteAll();
      TellEvents();
    }
  }

  // What goes out.

  LabelSet WishedLabels() const {
    LabelSet labels = *news->labels;
    if (nfd.value_or(false) && options.labels.host_features == Switch::kAuto)
      std::erase_if(labels, [](const auto& label) { return label.first.starts_with(kHostFeatures); });
    return labels;
  }

  void WriteLabels(const Done& done) {
    const NodeView* node = watch.node();
    if (!begun || node == nullptr || carried == Carried::kUnknown || options.labels.node == Switch::kOff) return done({});
    if (!watch.owners_known()) return AskForOwners(done);
    const LabelPlan plan = keeper.Decide(*node, WishedLabels(), carried == Carried::kYes && options.labels.node == Switch::kAuto, Now());
    work.Say("contested labels", {plan.contested.empty() ? "" : "others change labels of ours: " + plan.contested});
    if (plan.again) work.After(kLabels, *plan.again);
    if (!plan.write) return done({});
    // The uid keeps this from making a Node that has just gone.
    const Json object = {
        {"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", {{"name", node->name}, {"uid", node->uid}, {"labels", plan.set}}}};
    api.Do(edge::kube::Apply({"", "v1", "nodes"}, "", object, kLabelsManager),
           [weak = weak_from_this(), set = plan.set, done](const auto& answer) {
             if (const auto self = weak.lock()) self->LabelsWritten(set, answer, done);
           });
  }

  void AskForOwners(const Done& done) {
    api.Do(edge::kube::Get({"", "v1", "nodes"}, "", options.node), [weak = weak_from_this(), done](const auto& answer) {
      const auto self = weak.lock();
      if (!self) return;
      const auto node = edge::kube::Parse(answer);
      if (!node.ok()) return done(node.error().code() == Code::kNotFound ? Status() : Status(node.error()));  // the watch tells of its end
      self->watch.Adopt(*node);
      if (self->watch.owners_known()) return self->WriteLabels(done);
      self->work.Soon(kLabels);
      done({});
    });
  }

  void LabelsWritten(const LabelSet& set, const base::Result<Answer>& answer, const Done& done) {
    if (!answer.ok()) return done(answer.error());
    keeper.Wrote(set, Now());
    if (const auto node = edge::kube::Parse(answer); node.ok()) watch.Adopt(*node);
    done({});
  }

  std::string NodeUid() const { return watch.node() == nullptr ? "" : watch.node()->uid; }
  /// What belongs to the Node waits until it is known, or known that it may not be.
  bool OwnerKnown() const { return watch.node() != nullptr || watch.node_forbidden(); }

  void WriteFeature(const Done& done) {
    if (!begun || !OwnerKnown()) return done({});
    work.After(kFeature, kLookAgain);
    feature.Bring([this](const Json*) { return NodeFeatureOf(options.node, NodeUid(), WishedLabels()); },
                  [this, done](const Status& status) {
                    if (!IsPassing(status)) SetCarried(status.ok() ? Carried::kYes : Carried::kNo);
                    done(NotInstalled(status, "NodeFeature", "install NFD, or set labels.nodeFeature to off"));
                  });
  }

  void SetCarried(Carried now) {
    if (std::exchange(carried, now) != now) work.Soon(kLabels);
  }

  void WriteNodeState(const Done& done) {
    if (!begun || !OwnerKnown()) return done({});
    work.After(kNodeState, kLookAgain);
    node_state.Bring([this](const Json* found) { return WantedNodeState(found); },
                     [this, done](const Status& status) {
                       if (!status.ok() && !IsPassing(status)) Remember(nullptr);
                       done(NotInstalled(status, "NodeState", "apply the CRD of the chart, or set cluster.nodeState to off"));
                     });
  }

  Json WantedNodeState(const Json* found) {
    Remember(found);
    api::Report report = news->report;
    for (api::DoorReport& door : report.doors)
      if (door.name == "cluster") door = OwnDoor(true);
    Json object = OwnedNodeState(report, NodeUid());
    times.PutInto(object, Now() - *begun < kOfTheStart);
    return object;
  }

  /// What was told before this agent began; null: nothing is known of that.
  void Remember(const Json* found) {
    if (std::exchange(remembered, true)) return;
    if (found != nullptr) {
      times.Remember(*found);
      if (const auto before = api::ReportOf(*found); before.ok()) events.Remember(*before);
    }
    TellEvents();
  }

  void WriteNodeStatus(const Done& done) {
    const NodeView* node = watch.node();
    if (!amounts || node == nullptr) return done(NothingTried());
    const auto patch = StatusPatch(node->numbers, *amounts);
    if (!patch || Now() - amounts_at > kNumbersAreNew) {
      amounts.reset();
      return done(NothingTried());
    }
    api.Do(edge::kube::Patch({"", "v1", "nodes"}, "", options.node, edge::kube::kStrategicMergePatch, *patch, "penstock", "status"),
           [weak = weak_from_this(), sent = *amounts, done](const auto& answer) {
             if (const auto self = weak.lock()) self->NodeStatusWritten(sent, answer, done);
           });
  }

  void NodeStatusWritten(const KubeletAmounts& sent, const base::Result<Answer>& answer, const Done& done) {
    const bool refused = !answer.ok() && answer.error().code() == Code::kPermissionDenied;
    if ((answer.ok() || refused) && amounts == sent) amounts.reset();
    if (!answer.ok()) return done(answer.error());
    if (const auto node = edge::kube::Parse(answer); node.ok()) watch.Adopt(*node);
    done({});
  }

  void TellEvents() {
    if (options.config.events == Switch::kOff || !begun || !OwnerKnown()) return;
    if (!remembered && options.config.node_state != Switch::kOff) return;  // what was told before is being looked up
    const edge::kube::ObjectReference about{"v1", "Node", "", options.node, NodeUid()};
    for (const NodeEvent& event : events.Next(news->report, news->notices))
      event.warning ? recorder.Warning(about, event.reason, event.message) : recorder.Normal(about, event.reason, event.message);
  }

  /// `lasting`: as the object itself tells it. That the server was away for a moment is nothing to write to it when it is back.
  api::DoorReport OwnDoor(bool lasting) const {
    const bool reads = lasting || (watch.node() != nullptr && !work.problems().contains("node"));
    api::DoorReport report{.name = "cluster", .state = reads ? "open" : "waiting"};
    std::vector<std::string> reasons;
    for (const auto& [what, problem] : work.problems())
      if (problem.lasting || !lasting) reasons.push_back(problem.text);
    if (reasons.empty() && !reads) reasons.push_back("asking the API server for this node");
    report.reason = base::Join(reasons, "; ");
    return report;
  }

  void TellState() {
    const api::DoorReport report = OwnDoor(false);
    if (told && told->state == report.state && told->reason == report.reason) return;
    told = report;
    callbacks.state(report);
  }

  edge::kube::Api& api;
  const Options options;
  const Callbacks callbacks;

  std::optional<ClusterNews> news;
  std::optional<base::TimePoint> begun;  // when the first news of devices came
  std::optional<KubeletAmounts> amounts;
  base::TimePoint amounts_at{};
  std::optional<NodeView> known;  // the last one that was acted upon
  std::optional<bool> nfd;
  std::optional<api::DoorReport> told;
  Carried carried;
  bool remembered = false;

  LabelKeeper keeper;
  StartTimes times;
  ReportEvents events;
  ClusterWork work;
  ClusterWatch watch;
  ClusterObject feature, node_state;
  edge::kube::EventRecorder recorder;
  ClusterCounters counters;
  ClusterPods pods;
};

ClusterDoor::ClusterDoor(edge::kube::Api& api, Options options, Callbacks callbacks)
    : state_(std::make_shared<State>(api, std::move(options), std::move(callbacks))) {}

ClusterDoor::~ClusterDoor() = default;

void ClusterDoor::Start() { state_->Start(); }

void ClusterDoor::Show(ClusterNews news) {
  state_->api.executor().Post([weak = std::weak_ptr(state_), news = std::move(news)]() mutable {
    if (const auto state = weak.lock()) state->Show(std::move(news));
  });
}

void ClusterDoor::ShowKubeletHas(const KubeletAmounts& resources) {
  state_->api.executor().Post([weak = std::weak_ptr(state_), resources] {
    if (const auto state = weak.lock()) state->ShowKubeletHas(resources);
  });
}

}  // namespace penstock::door
