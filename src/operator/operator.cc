// The tasks of the loop: "policies" computes what is wanted from all policies; one for each kind of
// objects makes it so; "status" reports. Nodes and policies have queues of their own, since there
// are many of them. "drivers" decides about driver containers.
#include "operator/operator.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "api/compat/policy_state.h"
#include "base/log.h"
#include "operator/agent_traces.h"
#include "operator/definitions.h"
#include "operator/driver/driver_rollout.h"
#include "operator/embedded_files.h"
#include "operator/host_release.h"
#include "operator/json_values.h"
#include "operator/left_operands.h"
#include "operator/names.h"
#include "operator/namespace_labels.h"
#include "operator/node_marker.h"
#include "operator/node_reports.h"
#include "operator/owned_objects.h"
#include "operator/pod_troubles.h"
#include "operator/policy_watch.h"
#include "operator/policy_writer.h"
#include "operator/startup_taints.h"
#include "protocol/kube/object_reconciler.h"
#include "protocol/kube/reconcile_loop.h"
#include "protocol/kube/status_error.h"

namespace penstock::cluster {

using protocol::kube::kRolesAreKnown;
using protocol::kube::ReconcileLoop;
using namespace std::chrono_literals;

namespace {

constexpr char kPolicies[] = "policies", kStatus[] = "status", kNamespace[] = "namespace",
               kDrivers[] = "drivers";
constexpr std::string_view kReports = "nodestates.penstock.io", kSetKind = "DaemonSet";
constexpr base::Duration kTogether = 20ms;  // changes that belong together
/// Policies that are applied one after another roll the agents out once.
constexpr base::Duration kPoliciesTogether = 500ms;
// A status and a turn of drivers look at every node: in a storm of changes the less often the more
// nodes there are, so that they take a few percent of a processor at any size.
constexpr base::Duration kShortest = 100ms, kForEachNode = 250us;
constexpr base::Duration kAgain = 10s;       // while something is being taken back
constexpr base::Duration kAgentsTake = 10s;  // of a roll-out that gets on
constexpr base::Duration kStarts = 10s;      // a server that starts refuses everything at first
constexpr std::size_t kMostProblems = 10;

// What is taken back of nodes, before their names.
constexpr char kMarks[] = "labels and annotations of ", kTraces[] = "what agents wrote to ",
               kUnread[] = "nodes that were not read yet";

ReconcileLoop::Problem ProblemFrom(const Status& why) {
  if (why.ok()) return {};
  return {why.error().message(), ReconcileLoop::IsRefusal(why.error().code())};
}

std::string TaskOf(const OwnedKind& kind) { return kind.resource.plural; }

/// "22 nodes (a, b, ... and 2 more)".
std::string Named(std::vector<std::string> nodes) {
  const std::size_t all = nodes.size();
  nodes.resize(std::min(all, kMostNamed));
  return std::to_string(all) + (all == 1 ? " node (" : " nodes (") + base::Join(nodes, ", ") +
         (all > nodes.size() ? " and " + std::to_string(all - nodes.size()) + " more)" : ")");
}

}  // namespace

struct Operator::State {
  State(protocol::kube::Api& a, Options o)
      : api(a),
        options(std::move(o)),
        work(api.executor(), [this] { StatusSoon(); }),
        watch(api, options.installation.namespace_name,
              {.changed = [this] { work.Soon(kPolicies); },
               .problem = [this](const std::string& plural,
                                 const Status& why) { OnProblem(plural, why); }}),
        marker(api, {.changed = [this] { OnNodes(); },
                     .problem = [this](const Status& why) { OnProblem("nodes", why); }}),
        rollout(api, options.host,
                {.due = [this] { work.Soon(kDrivers); },
                 .due_after = [this](auto delay) { work.After(kDrivers, delay); },
                 .problem = [this](const Status& why) { OnProblem("drivers", why); },
                 .daemon_set = [this](const auto& name) { return FindSet(name); },
                 .own =
                     [this](Json& object) {
                       if (effective.owner) SetOwner(object, *effective.owner);
                     }}),
        taints(api, [this] { StatusSoon(); }),
        agent_troubles(api, options.installation.namespace_name, std::string(kAgentName),
                       {.changed = [this] { StatusSoon(); },
                        .due_after = [this](auto delay) { work.After(kStatus, delay); },
                        .problem = [this](const Status& why) { OnProblem("agents", why); }}),
        reports(
            api, marker, agent_troubles,
            {.changed = [this](const auto& node, const Json* report) { OnReport(node, report); },
             .synced = [this] { StatusSoon(); },
             .problem = [this](const Status& why) { OnProblem("reports", why); }}),
        hosts(api, options.installation.namespace_name,
              {.changed = [this] { StatusSoon(); },
               .due_after = [this](auto delay) { work.After(kStatus, delay); },
               .problem = [this](const Status& why) { OnProblem("releases of hosts", why); }}),
        traces(api, [this] { StatusSoon(); }),
        labels(api, options.installation.namespace_name),
        left_operands(api, options.installation.namespace_name, [this] { StatusSoon(); }),
        writer(api, options.host,
               {.holds = [this](const auto& policy) { return Holds(policy); },
                .find = [this](const std::string& key) { return watch.Find(key); },
                .status = [this](const auto& policy, const auto& found,
                                 const auto& now) { return StatusFor(policy, found, now); },
                .state = [this](const auto& policy,
                                const auto& found) { return StateFor(policy, found); },
                .left = [this](const std::string& key) { return Left(key); },
                .taken_back = [this] { return TakenBack(); },
                .changed = [this] { StatusSoon(); }}) {
    using Done = ReconcileLoop::Done;
    work.Add({.name = kPolicies,
              .work = [this](const Done& done) { Compute(done); },
              .settle = kPoliciesTogether});
    work.Add({.name = kStatus,
              .work = [this](const Done& done) { Report(done); },
              .settle = kTogether,
              .spacing = kShortest});
    work.Add({.name = kNamespace, .work = [this](const Done& done) { LabelNamespace(done); }});
    work.Add({.name = kDrivers,
              .work = [this](const Done& done) { TurnDrivers(done); },
              .settle = kTogether,
              .spacing = kShortest});
    for (const OwnedKind& kind : OwnedKinds()) AddKind(kind);
  }

  void AddKind(const OwnedKind& kind) {
    const std::string task = TaskOf(kind);
    owned.emplace_back(
        api, kind, options.installation.namespace_name,
        OwnedObjects::Callbacks{
            .changed =
                [this, task, sets = kind.kind == kSetKind] {
                  work.Soon(task);
                  if (sets) work.Soon(kDrivers);
                  StatusSoon();
                },
            .due_after =
                [this, task](base::Duration delay) {
                  work.After(task, delay);
                  work.After(kStatus, delay);
                },
            .problem = [this, &kind](const Status& why) { OnKindProblem(kind, why); }});
    work.Add({.name = task,
              .work = [this, i = owned.size() -
                                 1](const ReconcileLoop::Done& done) { owned[i].Reconcile(done); },
              .settle = kTogether,
              .may_be_missing = kind.may_be_missing});
  }

  void Start() {
    for (OwnedObjects& objects : owned) objects.Start();
    left_operands.Start();
    auto all = EmbeddedObjects("CustomResourceDefinition");
    if (!all.ok()) return base::Log(base::kError, all.error().message());
    std::vector<std::string> names;
    for (const Json& definition : *all) names.push_back(TextAt(definition, "/metadata/name"));
    if (options.apply_definitions) {
      definitions.emplace(
          api, work, *std::move(all),
          Definitions::Callbacks{.established = [this](const auto& name) { Established(name); },
                                 .changed = [this] { StatusSoon(); }});
      definitions->Start();
    } else {
      for (const std::string& name : names) Established(name);
    }
  }

  void Established(const std::string& definition) {
    watch.Start(definition);
    if (definition == kReports) reports.Start();
  }

  void OnProblem(const std::string& what, const Status& why) {
    work.Report("watch of " + what, ProblemFrom(why));
  }

  void OnKindProblem(const OwnedKind& kind, const Status& why) {
    const bool missing = kind.may_be_missing && !why.ok() && why.error().code() == Code::kNotFound;
    OnProblem(kind.resource.plural, missing ? Status() : why);
  }

  void OnNodes() {
    const auto nodes = static_cast<base::Duration::rep>(marker.known());
    const base::Duration spacing = std::max(kShortest, kForEachNode * nodes);
    for (const char* task : {kStatus, kDrivers}) work.SetSpacing(task, spacing);
    StatusSoon();
  }
  void OnReport(const std::string& node, const Json* report) {
    rollout.SetReport(node, report ? DriverReportOf(*report) : std::nullopt);
    StatusSoon();
  }
  void StatusSoon() { work.Soon(kStatus); }

  // What is wanted.

  void Compute(const ReconcileLoop::Done& done) {
    if (!watch.synced()) {
      StatusSoon();
      return done({});
    }
    std::vector<PolicyObject> found = watch.policies();
    EffectiveSpec next = ComputeSpec(found, options.agent_rights, options.terms);
    // What would be taken back then does not come back with a policy that was there all the time.
    if (next.wanted) confirmed = false;
    if (known_spec && !next.wanted && !hosts.wanted() && !confirmed) return Confirm(done);
    policies = std::move(found);  // `next` points to its elements
    effective = std::move(next);
    reported.written = false;
    const auto labelled = namespace_labels;
    invalid.clear();
    if (effective.spec) {
      WantSpec(*effective.spec);
    } else if (!effective.wanted) {
      WantNothing();
    }
    computed = true;
    if (!labels.agrees() || labelled != namespace_labels) work.Soon(kNamespace);
    StatusSoon();
    done({});
  }

  /// That there is no other policy: the watch of one kind may show that a policy went before the
  /// watch of another kind shows the one that took its place.
  void Confirm(const ReconcileLoop::Done& done) {
    watch.Confirm([this, done](const Status& all_are_known) {
      confirmed = all_are_known.ok();
      if (confirmed) work.Soon(kPolicies);
      done(all_are_known);
    });
  }

  void WantSpec(const api::PenstockSpec& spec) {
    auto objects = ObjectsOf(spec, options.installation, *effective.owner);
    if (!objects.ok()) {
      invalid = objects.error().message();
      return;
    }
    // Pods that take back what agents left are privileged, too.
    const bool was_privileged = known_spec && known_spec->privileged_namespace;
    known_spec = spec;
    known_spec->privileged_namespace |= was_privileged;
    hosts.Forget();
    traces.Forget();
    namespace_labels = PrivilegedLabels(spec);
    spec_objects = *std::move(objects);
    drivers_planned = false;
    WantObjects();
    marker.Want(spec, true, KeysBefore());
    taints.Want(spec.startup_taints);
    rollout.Want(spec, {effective.unreadable_drivers.begin(), effective.unreadable_drivers.end()},
                 PlaceOfDrivers(spec));
  }

  /// Takes everything back. Which labels nodes may have is what the former policies say.
  void WantNothing() {
    spec_objects.clear();
    if (!known_spec) {
      std::vector<PolicyObject> before;
      for (const PolicyObject& policy : policies) before.push_back(AsItWas(policy));
      known_spec = ComputeSpec(before, {}, options.terms).spec;
      // It cannot be read as it is, but was in force once.
      const auto is_held = [](const PolicyObject& policy) {
        return HasFinalizer(policy, kFinalizer);
      };
      if (!known_spec && std::ranges::any_of(policies, is_held)) known_spec.emplace();
    }
    if (known_spec) WantHosts();
    // As long as pods of ours are to start there.
    namespace_labels.clear();
    if (known_spec && !hosts.over()) namespace_labels = PrivilegedLabels(*known_spec);
    WantObjects();
    taints.Want({});
    if (!known_spec) return;
    marker.Want(*known_spec, false, KeysBefore());
    api::PenstockSpec without = *known_spec;
    without.drivers.clear();
    rollout.Want(without, {}, PlaceOfDrivers(without));
  }

  /// What agents left goes once they have ended: what is on the hosts by pods of ours there, then
  /// what is in the API server, also of nodes that do not respond.
  void WantHosts() {
    const AgentsState agents = AgentsOf(FindSet(kAgentName));
    hosts.Want(agents.exists ? std::optional(agents.desired) : std::nullopt);
  }

  /// Which nodes have had an agent; but their kind may never be served.
  bool AwaitsReports() {
    if (reports.synced()) return false;
    const base::TimePoint now = api.executor().clock().Now();
    if (!reports_awaited) reports_awaited = now;
    const base::Duration left = *reports_awaited + kStarts - now;
    if (left > 0s) work.After(kStatus, left);
    return left > 0s;
  }

  void WatchHosts() {
    if (!hosts.wanted()) return;
    if (!hosts.begun()) {
      if (!ObjectsAreKnown() || AwaitsReports()) return;
      WantHosts();
      auto objects = HostReleaseOf(*known_spec, options.installation,
                                   reports.synced() ? reports.nodes() : std::set<std::string>());
      // What cannot be made of the spec was not made before.
      hosts.Begin(objects.ok() ? *std::move(objects) : std::vector<WantedObject>());
      WantObjects();
    }
    OwnedObjects& sets = owned[IndexOfSets()];
    const auto problem = work.problems().find(TaskOf(OwnedKinds()[IndexOfSets()]));
    const bool is_refused = problem != work.problems().end() && problem->second.lasting;
    const auto nodes = static_cast<std::int64_t>(marker.known());
    if (hosts.Look(FindSet(kHostReleaseName), is_refused,
                   marker.synced() ? std::optional(nodes) : std::nullopt)) {
      holders = reports.Holders();
      sets.LetGo(std::string(kHostReleaseName));
      WantObjects();
      if (!namespace_labels.empty() || !labels.agrees()) work.Soon(kNamespace);
      namespace_labels.clear();
      known_spec->privileged_namespace = false;
    }
    if (hosts.over() && sets.left().empty()) traces.TakeBack();
  }

  /// For the Event, after "its objects, and".
  TakenBackOfNodes TakenBack() const {
    std::vector<std::string> all;
    if (std::vector<std::string> nodes = marker.taken_back(); !nodes.empty())
      all.push_back(kMarks + Named(std::move(nodes)));
    if (std::vector<std::string> nodes = traces.taken_back(); !nodes.empty())
      all.push_back(kTraces + Named(std::move(nodes)));
    if (std::string of_hosts = hosts.taken_back(); !of_hosts.empty()) {
      all.push_back(std::move(of_hosts));
      if (!holders.empty())
        all.back() +=
            ", but for the CDI specifications of " + Named(holders) + ", whose devices are held";
    }
    return {base::Join(all, ", and "), hosts.has_given_up()};
  }

  /// Before it was deleted, or another operator took it over.
  static PolicyObject AsItWas(PolicyObject policy) {
    const bool was_ours = HasFinalizer(policy, kFinalizer);
    Json& metadata = policy.object["metadata"];
    metadata.erase("deletionTimestamp");
    if (was_ours) metadata.erase("finalizers");
    return policy;
  }

  /// Of the labels and annotations that policies caused which are deleted now: the operator before
  /// this one may have begun to take them back.
  MarkKeys KeysBefore() const {
    MarkKeys keys;
    for (const PolicyObject& policy : policies)
      if (HasFinalizer(policy, kFinalizer) && (IsDeleted(policy) || IsForeign(policy)))
        if (const auto spec = ComputeSpec({AsItWas(policy)}, {}, options.terms).spec)
          keys.Add(KeysOf(*spec));
    return keys;
  }

  void WantObjects() {
    for (const OwnedKind& kind : OwnedKinds()) WantObjectsOf(kind);
  }

  std::set<std::string> UidsOfPolicies() const {
    std::set<std::string> uids;
    for (const PolicyObject& policy : policies)
      if (!IsForeign(policy)) uids.insert(NameOf(policy).uid);
    return uids;
  }

  void WantObjectsOf(const OwnedKind& kind) {
    std::map<std::string, Json> wanted;
    const auto add = [&](const std::vector<WantedObject>& objects) {
      for (const WantedObject& one : objects)
        if (one.kind == &kind) wanted.emplace(TextAt(one.object, "/metadata/name"), one.object);
    };
    add(spec_objects);
    add(hosts.objects());
    OwnedObjects& objects = owned[static_cast<std::size_t>(&kind - OwnedKinds().data())];
    objects.SetPolicies(UidsOfPolicies());
    if (kind.kind == kSetKind) {
      for (const auto& [name, set] : driver_sets) wanted.emplace(name, set);
      objects.Want(
          std::move(wanted), [this](const Json& found) { return KeepsDriverSet(found); },
          effective.owner ? effective.owner->uid : "");
    } else {
      objects.Want(std::move(wanted));
    }
    work.Soon(TaskOf(kind));
  }

  // Drivers.

  DriverInstallation PlaceOfDrivers(const api::PenstockSpec& spec) const {
    const Installation& at = options.installation;
    return {.namespace_name = at.namespace_name,
            .image = spec.agent.image.empty() ? at.image : spec.agent.image,
            .pull_policy = spec.agent.pull_policy.empty() ? at.pull_policy : spec.agent.pull_policy,
            .pull_secrets = at.pull_secrets,
            .service_account = at.service_account,
            .driver_root = spec.host.driver_root,
            .startup_taints = spec.startup_taints};
  }

  void TurnDrivers(const ReconcileLoop::Done& done) {
    if (!computed || !effective.IsKnown() || !rollout.Turn()) return done({});
    driver_sets.clear();
    for (const auto& [name, set] : rollout.plan().daemon_sets)
      driver_sets[name] = OwnedDriverSet(set, options.installation, *effective.owner).object;
    drivers_planned = true;
    const bool drivers = effective.spec && !effective.spec->drivers.empty();
    marker.SetHostDrivers(drivers ? rollout.plan().host_drivers : std::set<std::string>());
    for (const OwnedKind& kind : OwnedKinds())
      if (kind.kind == kSetKind) WantObjectsOf(kind);
    StatusSoon();
    done({});
  }

  /// Before it is known which DaemonSets of drivers are wanted, all of them stay.
  bool KeepsDriverSet(const Json& found) const {
    if (!IsDriverSet(found)) return false;
    return !drivers_planned || rollout.plan().kept_sets.contains(TextAt(found, "/metadata/name"));
  }

  static std::size_t IndexOfSets() {
    const auto kind = std::ranges::find(OwnedKinds(), kSetKind, &OwnedKind::kind);
    return static_cast<std::size_t>(kind - OwnedKinds().begin());
  }
  const Json* FindSet(std::string_view name) const {
    return owned[IndexOfSets()].Find(std::string(name));
  }

  void LabelNamespace(const ReconcileLoop::Done& done) {
    // What an operator before this one has labelled stays while pods of ours are to start there.
    const bool stays = namespace_labels.empty() && hosts.wanted() && !hosts.over();
    if (!computed || stays) return done({});
    work.After(kNamespace, protocol::kube::kRereadInterval);
    labels.Reconcile(namespace_labels, [this, done](const Status& status) {
      StatusSoon();
      done(status);
    });
  }

  bool ObjectsAgree() const {
    return std::ranges::all_of(
        owned, [](const OwnedObjects& one) { return one.missing() || one.agrees(); });
  }

  bool ObjectsAreKnown() const {
    return std::ranges::all_of(
        owned, [](const OwnedObjects& one) { return one.missing() || one.known(); });
  }

  /// What is to be done before a deleted policy can go, and what prevents it; empty: it can. What
  /// other policies want and is not there does not hold it: in a namespace that is being deleted,
  /// nothing can be created any more.
  std::vector<std::string> Left(const std::string& key) const {
    std::vector<std::string> left;
    const auto seen = std::ranges::find_if(policies, [&key](const PolicyObject& policy) {
      return (IsDeleted(policy) || IsForeign(policy)) && KeyOf(policy) == key;
    });
    const bool is_seen = seen != policies.end();
    if (!computed || !is_seen || !effective.IsKnown())
      left.emplace_back("what it caused is not known yet");
    const std::string uid = is_seen ? NameOf(*seen).uid : "";
    for (const OwnedObjects& objects : owned)
      for (std::string& one : objects.left(uid)) left.push_back(std::move(one));
    if (left.empty() && !ObjectsAreKnown()) left.emplace_back("objects that were not read yet");
    if (std::string of_hosts = hosts.left(); !of_hosts.empty()) left.push_back(std::move(of_hosts));
    if (!labels.agrees()) left.emplace_back("labels of the namespace");
    if (known_spec && !marker.settled())
      left.push_back(kMarks + (marker.synced() ? Named(marker.unsettled()) : kUnread));
    if (hosts.wanted() && !traces.settled())
      left.push_back(kTraces + (traces.listed() ? Named(traces.unsettled()) : kUnread));
    if (known_spec && !rollout.settled()) left.emplace_back("drivers");
    if (!left.empty())
      for (std::string& problem : Problems()) left.push_back(std::move(problem));
    return left;
  }

  // Reports.

  void Report(const ReconcileLoop::Done& done) {
    NoteRefusals();
    computed ? ReportAll() : ReportUndecided();
    done({});
  }

  void ReportAll() {
    WatchAgents();
    WatchHosts();
    reported = Facts();
    NotePass();
    bool taken_back = false;
    std::set<std::string> keys;
    for (const PolicyObject& policy : watch.policies()) {
      keys.insert(KeyOf(policy));
      taken_back |= IsDeleted(policy) || (IsForeign(policy) && HasFinalizer(policy, kFinalizer));
      if (IsDeleted(policy) || IsForeign(policy) || IsKnown(policy)) writer.Soon(KeyOf(policy));
    }
    writer.ForgetOthers(keys);
    if (taken_back) work.After(kStatus, kAgain);
    taints.SetReady(reports.Ready(Known()));
  }

  void NotePass() {
    // Until now: what changes that is noticed, so that without a change no pass is needed.
    if (passes.last_ready) passes.succeeded = api.executor().clock().Wall();
    policy_states.clear();
    passes.last_ready = false;
    for (const PolicyObject& policy : watch.policies()) {
      if (IsDeleted(policy) || IsForeign(policy) || !policy.kind->not_served.empty()) continue;
      const Json* found = Find(policy.object, "/status");
      const std::string state = StateFor(policy, found == nullptr ? Json() : *found).state;
      if (state.empty() || state == "ignored") continue;
      policy_states.push_back({NameOf(policy).kind, NameOf(policy).name, state == "ready"});
      if (!AddsDriver(policy)) passes.last_ready = true;
    }
    for (const PolicyNumbers& policy : policy_states) passes.last_ready &= policy.ready;
    passes.last_failed = !reported.problems.empty();
    ++passes.all;
    passes.failed += passes.last_failed ? 1 : 0;
  }

  /// An operator that has started, and for long enough has not learnt what is wanted, says why.
  void ReportUndecided() {
    if (Problems().empty()) return undecided_since.reset();
    const base::TimePoint now = api.executor().clock().Now();
    if (!undecided_since) undecided_since = now;
    const base::Duration left = *undecided_since + kStarts - now;
    if (left > 0s) return work.After(kStatus, left);
    passes.last_failed = true;
    ++passes.all;
    ++passes.failed;
    for (const PolicyObject& policy : watch.policies())
      if (IsUndecided(policy)) writer.Soon(KeyOf(policy));
  }

  /// Others have no effect, as far as is known, and have said so.
  static bool IsUndecided(const PolicyObject& policy) {
    return policy.kind->not_served.empty() && !IsForeign(policy) &&
           api::compat::StateOfPolicy(policy.object) != "ignored";
  }

  /// Nothing follows from others, or it is taken back while the policies stay.
  bool Holds(const PolicyObject& policy) const {
    return computed && policy.kind->not_served.empty() && !AddsDriver(policy);
  }

  /// Why a roll-out of agents does not get on is said by their pods.
  void WatchAgents() {
    const base::TimePoint now = api.executor().clock().Now();
    if (!effective.spec || Agents().complete()) {
      agents_since.reset();
      return agent_troubles.Read(false);
    }
    if (!agents_since) agents_since = AreAgentsMissed() ? now - kAgentsTake : now;
    const base::Duration left = *agents_since + kAgentsTake - now;
    if (left > 0s) return work.After(kStatus, left);
    agent_troubles.Read(true);
  }

  /// As the operator before this one has said, which takes nothing of that back.
  bool AreAgentsMissed() const {
    return std::ranges::any_of(watch.policies(), [](const PolicyObject& policy) {
      return !IsForeign(policy) &&
             Find(policy.object, "/status/nodes/byReason/" + std::string(kAgentNotReady));
    });
  }

  /// Whether there is something to say: an operator that has just started does not replace what the
  /// one before it said by that it is reading.
  bool IsKnown(const PolicyObject& policy) const {
    const bool read =
        IsComplete() && agent_troubles.has_read() && (drivers_planned || !AddsDriver(policy));
    return read || !Problems().empty();
  }

  bool IsComplete() const {
    return computed && marker.synced() && reports.synced() && left_operands.synced();
  }

  const PolicyOutcome* OutcomeOf(const PolicyObject& policy) const {
    const auto found = std::ranges::find_if(effective.outcomes, [&](const PolicyOutcome& one) {
      return one.policy->kind == policy.kind && NameOf(*one.policy) == NameOf(policy);
    });
    return found == effective.outcomes.end() ? nullptr : &*found;
  }

  Json StatusFor(const PolicyObject& policy, const Json& found, const std::string& now) const {
    if (!computed) return StatusOfUndecided(policy, Problems(), found, now);
    const PolicyOutcome* outcome = OutcomeOf(policy);
    return outcome == nullptr ? Json() : StatusOf(*outcome, reported, found, now);
  }

  PolicyState StateFor(const PolicyObject& policy, const Json& found) const {
    if (!computed) return StateOfUndecided(Problems());
    const PolicyOutcome* outcome = OutcomeOf(policy);
    return outcome == nullptr ? PolicyState{} : StateOf(*outcome, reported, found);
  }

  /// What nodes are judged by.
  api::PenstockSpec Known() const { return known_spec.value_or(api::PenstockSpec{}); }

  AgentsState Agents() const {
    AgentsState agents = AgentsOf(FindSet(kAgentName));
    agents.troubles = agent_troubles.troubles();
    return agents;
  }

  /// Of the policies that are in effect, by uid.
  std::map<std::string, Json> Generations() const {
    std::map<std::string, Json> generations;
    for (const PolicyObject& policy : policies)
      if (const Json* generation = Find(policy.object, "/metadata/generation"))
        generations[NameOf(policy).uid] = *generation;
    return generations;
  }

  ClusterFacts Facts() {
    ClusterFacts facts;
    facts.namespace_name = options.installation.namespace_name;
    facts.agents = Agents();
    const api::PenstockSpec spec = Known();
    facts.fleet = reports.Labelled(spec);
    facts.all_accelerators = reports.has_devices() ? reports.All(spec) : facts.fleet;
    for (const PolicyObject& policy : policies)
      if (const std::string& vendor = policy.kind->vendor;
          !vendor.empty() && !facts.vendors.contains(vendor))
        facts.vendors[vendor] = reports.OfVendor(vendor, spec);
    facts.drivers = rollout.plan().drivers;
    facts.reports_expected =
        !known_spec || known_spec->node.cluster.node_state != api::Switch::kOff;
    facts.reports = static_cast<std::int64_t>(reports.size());
    facts.complete = IsComplete();
    facts.written = effective.IsKnown() && invalid.empty() && drivers_planned && ObjectsAgree();
    facts.generations_written =
        facts.written ? Generations() : std::move(reported.generations_written);
    facts.problems = Problems();
    // Where it interferes it is among them.
    if (const OperandsLeft left = LeftByOthers(); left_operands.synced())
      facts.operands_left = left.interferes ? "" : left.text;
    if (!definitions) facts.definitions.emplace();
    if (definitions && definitions->kept() != nullptr) facts.definitions = *definitions->kept();
    if (facts.definitions && !AreRefusalsLasting())
      std::erase_if(*facts.definitions, [](const auto& kept) {
        return protocol::kube::NamesMissingRule(kept.second.why);
      });
    return facts;
  }

  /// A refusal counts once there have been some for long enough: an API server that has just
  /// started refuses what it permits later, in the same words where it knows no binding yet, or
  /// because a role is "not found", as it would say of one that is missing.
  void NoteRefusals() {
    const std::vector<std::string> all = AllProblems();
    if (std::ranges::none_of(all, protocol::kube::NamesMissingRule)) return refused_since.reset();
    const base::TimePoint now = api.executor().clock().Now();
    if (!refused_since) refused_since = now;
    // Asked each time: a refusal may come before the policies do.
    if (now - *refused_since < kRolesAreKnown && IsMissingRuleSaid())
      refused_since = now - kRolesAreKnown;
    const base::Duration left = *refused_since + kRolesAreKnown - now;
    if (left > 0s) work.After(kStatus, left);
  }

  /// An operator that starts takes back nothing of what the one before it said.
  bool IsMissingRuleSaid() const {
    for (const PolicyObject& policy : watch.policies()) {
      if (IsForeign(policy)) continue;
      for (const Json& condition : ListAt(policy.object, "/status/conditions"))
        if (TextAt(condition, "/type") == "Error" &&
            protocol::kube::NamesMissingRule(TextAt(condition, "/message")))
          return true;
    }
    return false;
  }

  bool AreRefusalsLasting() const {
    return refused_since && api.executor().clock().Now() - *refused_since >= kRolesAreKnown;
  }

  std::vector<std::string> Problems() const {
    std::vector<std::string> problems = AllProblems();
    if (!AreRefusalsLasting()) std::erase_if(problems, protocol::kube::NamesMissingRule);
    if (problems.size() > kMostProblems) problems.resize(kMostProblems);
    return problems;
  }

  /// What would be left once nothing is wanted goes with its policies. What was made for a policy
  /// that has no effect here is not the agents' work.
  OperandsLeft LeftByOthers() const {
    if (!effective.wanted) return {};
    std::set<std::string> in_force;
    for (const PolicyOutcome& one : effective.outcomes)
      if (one.ignored.empty() && one.policy->kind->not_served.empty() && !IsForeign(*one.policy))
        in_force.insert(NameOf(*one.policy).uid);
    return left_operands.Find(in_force);
  }

  std::vector<std::string> AllProblems() const {
    std::vector<std::string> problems;
    if (!invalid.empty()) problems.push_back(invalid);
    for (const std::string& policy : effective.unreadable)
      problems.push_back(policy +
                         " cannot be read: until it is corrected or deleted, no change of "
                         "any policy takes effect");
    for (const auto& [what, problem] : work.problems())
      if (problem.lasting) problems.push_back(problem.text);
    for (const auto& texts : {marker.problems(), rollout.problems(), taints.problems(),
                              traces.problems(), writer.problems()})
      problems.insert(problems.end(), texts.begin(), texts.end());
    for (const OwnedObjects& objects : owned)
      for (std::string& text : objects.problems()) problems.push_back(std::move(text));
    if (OperandsLeft left = LeftByOthers(); left.interferes)
      problems.push_back(std::move(left.text));
    return problems;
  }

  Numbers numbers() const {
    Numbers now{.policies = policies.size(),
                .nodes = marker.known(),
                .device_nodes = marker.nodes().size(),
                .policy_states = policy_states,
                .passes = passes,
                .drivers = rollout.plan().drivers,
                .automatic_upgrades =
                    effective.spec && std::ranges::any_of(effective.spec->drivers,
                                                          [](const api::DriverSpec& driver) {
                                                            return driver.upgrade.automatic;
                                                          }),
                .fleet = reports.All(Known()),
                .agents = Agents(),
                .problems = Problems().size()};
    if (passes.last_ready) now.passes.succeeded = api.executor().clock().Wall();
    now.writes = {{"node", marker.writes() + rollout.writes() + taints.writes() + traces.writes()},
                  {"status", writer.writes()},
                  {"object", rollout.check_writes()}};
    for (const OwnedObjects& objects : owned) now.writes["object"] += objects.writes();
    return now;
  }

  protocol::kube::Api& api;
  const Options options;
  std::vector<PolicyObject> policies;  // of `effective`
  EffectiveSpec effective;
  std::optional<api::PenstockSpec> known_spec;  // the last that was in force
  std::map<std::string, std::string> namespace_labels;
  std::string invalid;  // why the spec makes no objects
  bool computed = false;
  bool confirmed = false;  // nothing is wanted: no watch lags
  std::vector<WantedObject> spec_objects;
  std::map<std::string, Json> driver_sets;
  bool drivers_planned = false;              // as they are wanted now
  ClusterFacts reported;                     // of the last Report: many policies may have a status
  std::vector<PolicyNumbers> policy_states;  // as of that
  Passes passes;

  ReconcileLoop work;
  std::optional<Definitions> definitions;
  PolicyWatch watch;
  NodeMarker marker;
  DriverRollout rollout;
  StartupTaints taints;
  PodTroubles agent_troubles;
  NodeReports reports;
  std::vector<std::string> holders;                // as `hosts` ended: their containers need the
                                                   // CDI specifications to start again (CleanSeen)
  HostRelease hosts;                               // while nothing is wanted
  std::optional<base::TimePoint> reports_awaited;  // ... and it is not known where agents were
  AgentTraces traces;                              // ... and then
  std::optional<base::TimePoint> agents_since;     // not all agents are as wanted
  std::optional<base::TimePoint> undecided_since;  // not computed, because of problems
  std::optional<base::TimePoint> refused_since;    // AllProblems() has had a refusal
  NamespaceLabels labels;
  LeftOperands left_operands;
  std::deque<OwnedObjects> owned;
  PolicyWriter writer;
};

Operator::Operator(protocol::kube::Api& api, Options options)
    : state_(std::make_shared<State>(api, std::move(options))) {}

Operator::~Operator() = default;

void Operator::Start() { state_->Start(); }
Operator::Numbers Operator::numbers() const { return state_->numbers(); }

}  // namespace penstock::cluster
