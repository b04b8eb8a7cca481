// A node is written with the version at which it was read, and only if it still is as the decision
// supposed. What is being written counts as if it were there, but the place of a node whose upgrade
// ends is free only once that is answered: so no limit is exceeded while an answer is late.
#include "operator/driver/driver_rollout.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/backoff.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "operator/driver/image_checks.h"
#include "operator/driver/node_writer.h"
#include "operator/driver/upgrade_events.h"
#include "operator/json_values.h"
#include "operator/names.h"
#include "protocol/kube/events.h"
#include "protocol/kube/informer.h"

namespace penstock::cluster {

using protocol::kube::Informer;
using namespace std::chrono_literals;

namespace {

constexpr base::Duration kRetry = 5s;        ///< of evictions that were refused
constexpr base::Duration kMostRetry = 1min;  ///< of a node that cannot be written, from kRetry on
const protocol::kube::Resource kNodeKind{"", "v1", "nodes"}, kPodKind{"", "v1", "pods"},
    kMapKind{"", "v1", "configmaps"}, kClaimKind{"resource.k8s.io", "v1", "resourceclaims"};
/// Each node that is upgraded has Events, and there is one operator in a cluster.
constexpr protocol::kube::EventLimits kEventLimits{.burst = 100, .spacing = 100ms};
constexpr char kDriverPods[] = "app.kubernetes.io/component=nvidia-driver";

/// The ConfigMaps whose keys become files.
std::set<std::string> MapsOf(const std::vector<api::DriverSpec>& drivers) {
  std::set<std::string> names;
  for (const api::DriverSpec& driver : drivers)
    for (const std::string* name :
         {&driver.files.repositories, &driver.files.certificates, &driver.files.module_options})
      if (!name->empty()) names.insert(*name);
  return names;
}

Json ReducedMap(const Json& map, const std::set<std::string>& wanted) {
  Json reduced = {{"metadata",
                   {{"name", TextAt(map, "/metadata/name")},
                    {"namespace", TextAt(map, "/metadata/namespace")}}}};
  if (!wanted.contains(TextAt(map, "/metadata/name"))) return reduced;
  for (const char* part : {"data", "binaryData"})
    if (const auto found = map.find(part); found != map.end() && found->is_object())
      for (const auto& [key, value] : found->items()) reduced["keys"].push_back(key);
  return reduced;
}

Json ReducedClaim(const Json& claim) {
  return {{"metadata",
           {{"name", TextAt(claim, "/metadata/name")},
            {"namespace", TextAt(claim, "/metadata/namespace")}}},
          {"holds", HoldsDevices(claim)}};
}

}  // namespace

struct DriverRollout::State : std::enable_shared_from_this<State> {
  State(protocol::kube::Api& a, const std::string& host, Callbacks c)
      : api(a),
        callbacks(std::move(c)),
        recorder(a, std::string(kManager), host, "default", kEventLimits),
        images(a, {.due = [this] { callbacks.due(); },
                   .due_after = [this](base::Duration delay) { callbacks.due_after(delay); },
                   .own = [this](Json& object) { callbacks.own(object); }}),
        writer(a,
               {.reduce = [this](const Json& node) { return ReducedDriverNode(node, keys); },
                .written = [this](const auto& node, const Json& basis,
                                  const NodeStep& step) { Announce(node, basis, step); },
                .done = [this](const std::string& node,
                               NodeWriter::Result result) { Written(node, std::move(result)); }}) {}

  // What is watched.

  void Want(const api::PenstockSpec& now, std::set<std::string> without, DriverInstallation where) {
    const bool same_marks = spec.marks == now.marks;
    if (spec.drivers != now.drivers || unreadable != without) turned = false;
    spec = now;
    unreadable = std::move(without);
    installation = std::move(where);
    if (std::set<std::string> needed = DriverLabelKeys(spec);
        !nodes || !std::ranges::includes(keys, needed)) {
      keys = std::move(needed);
      WatchNodes();
    } else if (!same_marks) {
      for (const std::string& name : Names()) Know(name, BasisOf(name));
    }
    if (!spec.drivers.empty() && !pods) WatchDriverPods();
    if (std::set<std::string> names = MapsOf(spec.drivers); names != map_names) {
      map_names = std::move(names);
      WatchMaps();
    }
    callbacks.due();
  }

  Informer::Handlers Handlers(std::function<void(const Json&)> changed,
                              std::function<void(const std::string&, const std::string&)> removed) {
    return {.changed = std::move(changed),
            .removed = std::move(removed),
            .synced = [this] { callbacks.due(); },
            .problem = [this](const Status& why) { callbacks.problem(why); }};
  }

  void WatchNodes() {
    facts.nodes.clear();
    facts.records.clear();
    Informer::Options options;
    options.resource = kNodeKind;
    options.metadata_only = spec.drivers.empty();
    options.reduce = [kept = keys](const Json& node) { return ReducedDriverNode(node, kept); };
    options.packed = true;
    nodes.emplace(api, options,
                  Handlers([this](const Json& node) { Seen(node); },
                           [this](const auto&, const auto& name) {
                             facts.nodes.erase(name);
                             facts.records.erase(name);
                             callbacks.due();
                           }));
    nodes->Start();
  }

  void Seen(const Json& node) {
    Know(TextAt(node, "/metadata/name"), node);
    callbacks.due();
  }

  base::WallTime Wall() const { return api.executor().clock().Wall(); }

  /// Reads a Node once, not in each turn.
  void Know(const std::string& name, const Json& node) {
    RolloutNode& known = facts.nodes[name];
    const auto before = known.not_ready_since;
    known = RolloutNodeOf(node, spec.marks, Wall());
    if (known.not_ready_since && before) known.not_ready_since = before;
    facts.records[name] = ReadStoredRecord(known.node.labels, known.annotations);
  }

  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& [name, node] : facts.nodes) names.push_back(name);
    return names;
  }

  void SetReport(const std::string& node, const std::optional<DriverReport>& report) {
    const auto known = facts.reports.find(node);
    const bool has = known != facts.reports.end();
    if (report ? has && known->second == *report : !has) return;
    if (report) {
      facts.reports[node] = *report;
    } else {
      facts.reports.erase(known);
    }
    callbacks.due();
  }

  void WatchDriverPods() {
    Informer::Options options;
    options.resource = kPodKind;
    options.namespace_name = installation->namespace_name;
    options.label_selector = kDriverPods;
    options.reduce = ReducedDriverPod;
    options.packed = true;
    pods.emplace(api, options,
                 Handlers(
                     [this](const Json& pod) {
                       SeenPod(TextAt(pod, "/metadata/name"), RolloutPodOf(pod, Wall()));
                       callbacks.due();
                     },
                     [this](const auto&, const auto& name) {
                       Forget(name);
                       callbacks.due();
                     }));
    pods->Start();
  }

  void SeenPod(const std::string& name, RolloutPod pod) {
    if (const auto at = node_of_pod.find(name); at != node_of_pod.end()) {
      const RolloutPod& before = driver_pods.at(at->second).at(name);
      const bool is_same = before.pod.uid == pod.pod.uid && before.started == pod.started;
      if (is_same && pod.ready_since && before.ready_since) pod.ready_since = before.ready_since;
    }
    Forget(name);
    Add(name, std::move(pod));
  }

  void Add(const std::string& name, RolloutPod pod) {
    const std::string node = pod.node;
    driver_pods[node].insert_or_assign(name, std::move(pod));
    node_of_pod[name] = node;
    ChoosePod(node);
  }

  void Forget(const std::string& name) {
    const auto found = node_of_pod.extract(name);
    if (found.empty()) return;
    driver_pods[found.mapped()].erase(name);
    ChoosePod(found.mapped());
  }

  /// The one of a node's pods that counts: one that is ending only if there is no other.
  void ChoosePod(const std::string& node) {
    facts.pods.erase(node);
    for (const auto& [name, pod] : driver_pods[node]) {
      const auto [at, is_new] = facts.pods.emplace(node, pod);
      if (!is_new && at->second.pod.terminating) at->second = pod;
    }
    if (driver_pods[node].empty()) driver_pods.erase(node);
  }

  void WatchMaps() {
    maps.reset();
    map_keys.clear();
    if (map_names.empty()) return;
    Informer::Options options;
    options.resource = kMapKind;
    options.namespace_name = installation->namespace_name;
    options.reduce = [wanted = map_names](const Json& map) { return ReducedMap(map, wanted); };
    maps.emplace(api, options,
                 Handlers(
                     [this](const Json& map) {
                       const std::string name = TextAt(map, "/metadata/name");
                       if (!map_names.contains(name)) return;
                       map_keys[name] = map.value("keys", std::vector<std::string>{});
                       callbacks.due();
                     },
                     [this](const auto&, const auto& name) {
                       if (map_keys.erase(name) > 0) callbacks.due();
                     }));
    maps->Start();
  }

  /// The pods of a node whose upgrade depends on them.
  struct NodePods {
    std::map<std::string, Json> pods;  // by namespace and name
    std::optional<Informer> informer;
  };

  void WatchPodsOf(const std::string& node) {
    NodePods& watched = node_pods[node];
    if (watched.informer) return;
    Informer::Options options;
    options.resource = kPodKind;
    options.field_selector = "spec.nodeName=" + node;
    options.reduce = ReducedPod;
    options.spread = 500ms;
    watched.informer.emplace(
        api, options,
        Handlers(
            [this, &watched](const Json& pod) {
              watched
                  .pods[TextAt(pod, "/metadata/namespace") + "/" + TextAt(pod, "/metadata/name")] =
                  pod;
              callbacks.due();
            },
            [this, &watched](const std::string& space, const std::string& name) {
              watched.pods.erase(space + "/" + name);
              callbacks.due();
            }));
    watched.informer->Start();
  }

  void WatchClaims() {
    if (claims) return;
    Informer::Options options;
    options.resource = kClaimKind;
    options.reduce = ReducedClaim;
    auto handlers = Handlers(
        [this](const Json& claim) {
          const std::string name =
              TextAt(claim, "/metadata/namespace") + "/" + TextAt(claim, "/metadata/name");
          if (claim.value("holds", false)) {
            claimed.insert(name);
          } else {
            claimed.erase(name);
          }
          callbacks.due();
        },
        [this](const std::string& space, const std::string& name) {
          claimed.erase(space + "/" + name);
          callbacks.due();
        });
    handlers.problem = [this](const Status& why) {
      // A cluster without claims: none of them holds a device.
      no_claims = !why.ok() && why.error().code() == Code::kNotFound;
      callbacks.problem(no_claims ? Status() : why);
      callbacks.due();
    };
    claims.emplace(api, options, std::move(handlers));
    claims->Start();
  }

  /// Watches what the plan depends on, and nothing else.
  void WatchNeeded(const std::set<std::string>& needed) {
    std::erase_if(node_pods, [&](const auto& one) { return !needed.contains(one.first); });
    for (const std::string& node : needed) WatchPodsOf(node);
    if (!needed.empty()) {
      WatchClaims();
    } else {
      claims.reset();
      claimed.clear();
      no_claims = false;
    }
    ForgetRefused();
  }

  /// A roll-out takes days in a large cluster: of pods that are gone, and of those on nodes that it
  /// has left, nothing stays.
  void ForgetRefused() {
    if (refused.empty()) return;
    std::set<std::string> uids;
    for (const auto& [node, watched] : node_pods)
      for (const auto& [name, pod] : watched.pods) uids.insert(TextAt(pod, "/metadata/uid"));
    for (const auto& [node, its_pods] : driver_pods)
      for (const auto& [name, pod] : its_pods) uids.insert(pod.pod.uid);
    std::erase_if(refused, [&uids](const auto& one) { return !uids.contains(one.first); });
  }

  // Turns.

  bool IsRead() const {
    const bool has_pods = spec.drivers.empty() || (pods && pods->synced());
    return installation && nodes && nodes->synced() && has_pods && (!maps || maps->synced());
  }

  /// Adds what is not kept as it changes: little of it depends on the number of nodes.
  void CompleteFacts() {
    facts.drivers = spec.drivers;
    facts.unreadable = unreadable;
    facts.installation = *installation;
    facts.installation.config_maps = map_keys;
    facts.reports_expected = spec.node.cluster.node_state != api::Switch::kOff;
    AddSets();
    facts.pods_of_nodes.clear();
    for (const auto& [name, watched] : node_pods) {
      if (!watched.informer || !watched.informer->synced()) continue;
      std::vector<Json>& list = facts.pods_of_nodes[name];
      for (const auto& [key, pod] : watched.pods) list.push_back(pod);
    }
    facts.claims.reset();
    if (no_claims || (claims && claims->synced())) facts.claims = claimed;
    facts.refused.clear();
    for (const auto& [uid, refusal] : refused) facts.refused.emplace(uid, refusal.why);
    facts.being_written = writer.steps();
    facts.images = images.answers();
  }

  /// Those that were wanted, and those by which nodes have their pods.
  void AddSets() {
    std::set<std::string> names = set_names;
    facts.daemon_sets.clear();
    for (const auto& [name, node] : facts.nodes)
      if (const auto pool = node.node.labels.find(std::string(kPoolLabel));
          pool != node.node.labels.end())
        names.insert(pool->second);
    for (const std::string& name : names)
      if (const Json* found = callbacks.daemon_set(name)) facts.daemon_sets[name] = *found;
  }

  bool Turn() {
    if (!IsRead()) return false;
    const base::WallTime now = Wall();
    CompleteFacts();
    plan = PlanRollout(facts, now);
    // What could not be written is no problem once nothing is to be written there any more.
    std::erase_if(problems, [&](const auto& one) {
      return !plan.writes.contains(one.first) && !facts.being_written.contains(one.first);
    });
    WatchNeeded(plan.pods_needed);
    set_names.clear();
    for (const auto& [name, set] : plan.daemon_sets) set_names.insert(name);
    set_names.insert(plan.kept_sets.begin(), plan.kept_sets.end());
    for (auto [name, write] : plan.writes) {
      if (HasFailed(name)) continue;
      if (std::erase_if(write.step.actions, [&](const auto& one) { return IsTooSoon(one); }) > 0)
        callbacks.due_after(kRetry);
      if (!write.empty()) writer.Write(name, BasisOf(name), std::move(write));
    }
    images.Want(installation->namespace_name, plan.image_checks);
    WarnNodes();
    if (plan.look_again)
      callbacks.due_after(std::max<base::Duration>(*plan.look_again - now, 100ms));
    turned = true;
    return true;
  }

  /// Once for each cause.
  void WarnNodes() {
    for (const auto& [node, why] : plan.boot_warnings)
      if (const auto known = warned.find(node); known == warned.end() || known->second != why)
        recorder.Warning(AboutNode(node, BasisOf(node)), "NextKernelWithoutDriver", why);
    warned = plan.boot_warnings;
  }

  static protocol::kube::ObjectReference AboutNode(const std::string& name, const Json& node) {
    return {"v1", "Node", "", name, TextAt(node, "/metadata/uid")};
  }

  /// What the Node says was said: an operator that starts does not say it again.
  void Announce(const std::string& name, const Json& before, const NodeStep& step) {
    const auto event = UpgradeEventOf(ReadStoredRecord(TextsAt(before, "/metadata/labels"),
                                                       TextsAt(before, "/metadata/annotations"))
                                          .record,
                                      step);
    if (!event) return;
    if (event->warning) {
      recorder.Warning(AboutNode(name, before), kUpgradeReason, event->message);
    } else {
      recorder.Normal(AboutNode(name, before), kUpgradeReason, event->message);
    }
  }

  /// A node that could not be written is not tried again with each change of anything.
  bool HasFailed(const std::string& node) const {
    const auto found = problems.find(node);
    if (found == problems.end()) return false;
    const base::Duration left = found->second.again - api.executor().clock().Now();
    if (left > 0s) callbacks.due_after(left);
    return left > 0s;
  }

  /// An eviction that was refused is not asked for again at once.
  bool IsTooSoon(const UpgradeAction& action) const {
    const auto found = refused.find(action.uid);
    return found != refused.end() && api.executor().clock().Now() - found->second.at < kRetry;
  }

  /// The node as the plan saw it.
  Json BasisOf(const std::string& name) const {
    const auto found = nodes->Find("", name);
    return found == nullptr ? Json() : *found;
  }

  void Written(const std::string& node, NodeWriter::Result result) {
    for (auto& [uid, why] : result.refused)
      refused[uid] = {std::move(why), api.executor().clock().Now()};
    if (!result.node.is_null()) nodes->Learn(result.node);
    callbacks.due_after(result.status.ok() ? base::Duration(0) : kRetry);
    if (result.status.ok()) {
      problems.erase(node);
    } else if (result.status.error().code() != Code::kAborted) {
      base::Log(base::kWarn, "node not written",
                {{"node", node}, {"why", result.status.error().message()}});
      Problem& problem = problems[node];
      problem.text = result.status.error().message();
      problem.again = api.executor().clock().Now() + problem.retry.Next();
    }
  }

  protocol::kube::Api& api;
  const Callbacks callbacks;
  api::PenstockSpec spec;
  std::optional<DriverInstallation> installation;
  std::set<std::string> unreadable, keys, map_names, set_names;
  RolloutFacts facts;  // nodes, records, reports and pods of it are kept up to date
  std::map<std::string, std::map<std::string, RolloutPod>> driver_pods;  // by node, then name
  std::map<std::string, std::string> node_of_pod;
  std::map<std::string, std::vector<std::string>> map_keys;
  DeviceClaims claimed;
  bool no_claims = false;
  struct Refusal {
    std::string why;
    base::TimePoint at{};
  };
  std::map<std::string, Refusal> refused;  // the last eviction or deletion of a pod, by its uid
  struct Problem {
    std::string text;
    base::TimePoint again{};
    base::Backoff retry{kRetry, kMostRetry};
  };
  std::map<std::string, Problem> problems;  // of nodes that could not be written
  RolloutPlan plan;
  bool turned = false;
  std::map<std::string, std::string> warned;  // nodes, and of what
  protocol::kube::EventRecorder recorder;
  ImageChecks images;
  NodeWriter writer;
  std::map<std::string, NodePods> node_pods;
  std::optional<Informer> nodes, pods, maps, claims;
};

DriverRollout::DriverRollout(protocol::kube::Api& api, const std::string& host, Callbacks callbacks)
    : state_(std::make_shared<State>(api, host, std::move(callbacks))) {}

DriverRollout::~DriverRollout() = default;

void DriverRollout::Want(const api::PenstockSpec& spec, std::set<std::string> unreadable,
                         DriverInstallation installation) {
  state_->Want(spec, std::move(unreadable), std::move(installation));
}

void DriverRollout::SetReport(const std::string& node, const std::optional<DriverReport>& report) {
  state_->SetReport(node, report);
}

bool DriverRollout::Turn() { return state_->Turn(); }

const RolloutPlan& DriverRollout::plan() const { return state_->plan; }

bool DriverRollout::settled() const {
  return state_->turned && state_->plan.writes.empty() && state_->writer.steps().empty() &&
         state_->images.settled();
}

std::uint64_t DriverRollout::writes() const { return state_->writer.writes(); }

std::uint64_t DriverRollout::check_writes() const { return state_->images.writes(); }

std::size_t DriverRollout::refused() const { return state_->refused.size(); }

std::vector<std::string> DriverRollout::problems() const {
  std::set<std::string> texts;
  for (const auto& [node, problem] : state_->problems) texts.insert(problem.text);
  return {texts.begin(), texts.end()};
}

}  // namespace penstock::cluster
