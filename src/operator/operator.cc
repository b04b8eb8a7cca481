// The tasks of the loop: "policies" computes what is wanted from all policies; one for each kind of
// objects makes it so; "status" reports. Nodes and policies have queues of their own, since there
// are many of them.
#include "operator/operator.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/log.h"
#include "operator/definitions.h"
#include "operator/embedded_files.h"
#include "operator/json_values.h"
#include "operator/names.h"
#include "operator/namespace_labels.h"
#include "operator/node_marker.h"
#include "operator/owned_objects.h"
#include "operator/policy_watch.h"
#include "operator/policy_writer.h"
#include "protocol/kube/informer.h"
#include "protocol/kube/object_reconciler.h"
#include "protocol/kube/reconcile_loop.h"

namespace penstock::cluster {

using protocol::kube::Informer;
using protocol::kube::ReconcileLoop;
using namespace std::chrono_literals;

namespace {

constexpr char kPolicies[] = "policies", kStatus[] = "status", kNamespace[] = "namespace";
constexpr std::string_view kReports = "nodestates.penstock.io";
constexpr base::Duration kTogether = 20ms;        // changes that belong together
constexpr base::Duration kStatusSpacing = 200ms;  // a thousand nodes that change at once
constexpr base::Duration kAgain = 10s;            // while something is being taken back
constexpr std::size_t kMostProblems = 10;

ReconcileLoop::Problem ProblemFrom(const Status& why) {
  if (why.ok()) return {};
  return {why.error().message(), ReconcileLoop::IsRefusal(why.error().code())};
}

std::string TaskOf(const OwnedKind& kind) { return kind.resource.plural; }

}  // namespace

struct Operator::State {
  State(protocol::kube::Api& a, Options o)
      : api(a),
        options(std::move(o)),
        work(api.executor(), [this] { StatusSoon(); }),
        watch(api, {.changed = [this] { work.Soon(kPolicies); },
                    .problem = [this](const std::string& plural,
                                      const Status& why) { OnProblem(plural, why); }}),
        marker(api, {.changed = [this] { OnNodes(); },
                     .problem = [this](const Status& why) { OnProblem("nodes", why); }}),
        labels(api, options.installation.namespace_name),
        writer(api, options.host,
               {.find = [this](const std::string& key) { return watch.Find(key); },
                .status = [this](const auto& policy, const auto& found,
                                 const auto& now) { return StatusFor(policy, found, now); },
                .state = [this](const auto& policy) { return StateFor(policy); },
                .clean = [this] { return Clean(); }}) {
    using Done = ReconcileLoop::Done;
    work.Add({.name = kPolicies,
              .work = [this](const Done& done) { Compute(done); },
              .settle = kTogether});
    work.Add({.name = kStatus,
              .work = [this](const Done& done) { Report(done); },
              .settle = kTogether,
              .spacing = kStatusSpacing});
    work.Add({.name = kNamespace, .work = [this](const Done& done) { LabelNamespace(done); }});
    for (const OwnedKind& kind : OwnedKinds()) AddKind(kind);
  }

  void AddKind(const OwnedKind& kind) {
    const std::string task = TaskOf(kind);
    owned.emplace_back(
        api, kind, options.installation.namespace_name,
        OwnedObjects::Callbacks{
            .changed =
                [this, task] {
                  work.Soon(task);
                  StatusSoon();
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
    auto all = EmbeddedObjects("CustomResourceDefinition");
    if (!all.ok()) return base::Log(base::kError, all.error().message());
    std::vector<std::string> names;
    for (const Json& definition : *all) names.push_back(TextAt(definition, "/metadata/name"));
    if (options.apply_definitions) {
      definitions.emplace(api, work, *std::move(all),
                          [this](const std::string& name) { Established(name); });
      definitions->Start();
    } else {
      for (const std::string& name : names) Established(name);
    }
  }

  void Established(const std::string& definition) {
    watch.Start(definition);
    if (definition == kReports) WatchReports();
  }

  void WatchReports() {
    Informer::Options about;
    about.resource = {"penstock.io", "v1alpha1", "nodestates"};
    about.reduce = ReducedNodeState;
    reports.emplace(
        api, about,
        Informer::Handlers{.changed = [this](const Json&) { StatusSoon(); },
                           .removed = [this](const auto&, const auto&) { StatusSoon(); },
                           .synced = [this] { StatusSoon(); },
                           .problem = [this](const Status& why) { OnProblem("reports", why); }});
    reports->Start();
  }

  void OnProblem(const std::string& what, const Status& why) {
    work.Report("watch of " + what, ProblemFrom(why));
  }

  void OnKindProblem(const OwnedKind& kind, const Status& why) {
    const bool missing = kind.may_be_missing && !why.ok() && why.error().code() == Code::kNotFound;
    OnProblem(kind.resource.plural, missing ? Status() : why);
  }

  void OnNodes() { StatusSoon(); }
  void StatusSoon() { work.Soon(kStatus); }

  // What is wanted.

  void Compute(const ReconcileLoop::Done& done) {
    if (!watch.synced()) return done({});
    policies = watch.policies();
    effective = ComputeSpec(policies);
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

  void WantSpec(const api::PenstockSpec& spec) {
    auto objects = ObjectsOf(spec, options.installation, *effective.owner);
    if (!objects.ok()) {
      invalid = objects.error().message();
      return;
    }
    known_spec = spec;
    namespace_labels = PrivilegedLabels(spec);
    Want(*std::move(objects));
    marker.Want(spec, true);
  }

  /// Takes everything back. Which labels nodes may have is what the deleted policies say.
  void WantNothing() {
    namespace_labels.clear();
    Want({});
    if (!known_spec) {
      std::vector<PolicyObject> deleted = policies;
      for (PolicyObject& policy : deleted) policy.object["metadata"].erase("deletionTimestamp");
      known_spec = ComputeSpec(deleted).spec;
    }
    if (known_spec) marker.Want(*known_spec, false);
  }

  void Want(std::vector<WantedObject> objects) {
    for (std::size_t i = 0; i < owned.size(); ++i) {
      const OwnedKind& kind = OwnedKinds()[i];
      std::map<std::string, Json> wanted;
      for (WantedObject& one : objects)
        if (one.kind == &kind) {
          std::string name = TextAt(one.object, "/metadata/name");
          wanted.emplace(std::move(name), std::move(one.object));
        }
      owned[i].Want(std::move(wanted));
      work.Soon(TaskOf(kind));
    }
  }

  void LabelNamespace(const ReconcileLoop::Done& done) {
    if (!computed) return done({});
    work.After(kNamespace, protocol::kube::kRereadInterval);
    labels.Reconcile(namespace_labels, [this, done](const Status& status) {
      StatusSoon();
      done(status);
    });
  }

  /// Whether a deleted policy can go.
  bool Clean() const {
    if (!computed || (effective.wanted && !effective.spec)) return false;
    for (std::size_t i = 0; i < owned.size(); ++i)
      if (!(OwnedKinds()[i].may_be_missing && !owned[i].synced()) && !owned[i].agrees())
        return false;
    return labels.agrees() && (!known_spec || marker.settled());
  }

  // Reports.

  void Report(const ReconcileLoop::Done& done) {
    if (computed) {
      bool deleted = false;
      for (const PolicyObject& policy : watch.policies()) {
        deleted |= IsDeleted(policy);
        writer.Soon(KeyOf(policy));
      }
      if (deleted) work.After(kStatus, kAgain);
    }
    done({});
  }

  const PolicyOutcome* OutcomeOf(const PolicyObject& policy) const {
    const auto found = std::ranges::find_if(effective.outcomes, [&](const PolicyOutcome& one) {
      return one.policy->kind == policy.kind && NameOf(*one.policy) == NameOf(policy);
    });
    return found == effective.outcomes.end() ? nullptr : &*found;
  }

  Json StatusFor(const PolicyObject& policy, const Json& found, const std::string& now) const {
    const PolicyOutcome* outcome = OutcomeOf(policy);
    return outcome == nullptr ? Json() : StatusOf(*outcome, Facts(), found, now);
  }

  PolicyState StateFor(const PolicyObject& policy) const {
    const PolicyOutcome* outcome = OutcomeOf(policy);
    return outcome == nullptr ? PolicyState{} : StateOf(*outcome, Facts());
  }

  FleetState Fleet() const {
    std::vector<NodeReadiness> nodes;
    const api::PenstockSpec spec = known_spec.value_or(api::PenstockSpec{});
    for (const NodeMarker::DeviceNode& node : marker.nodes())
      nodes.push_back(ReadinessOf(node.name, node.opted_out,
                                  reports ? reports->Find("", node.name) : nullptr, spec));
    return Count(std::move(nodes));
  }

  AgentsState Agents() const {
    for (std::size_t i = 0; i < owned.size(); ++i)
      if (OwnedKinds()[i].kind == "DaemonSet")
        return AgentsOf(owned[i].Find(std::string(kAgentName)));
    return {};
  }

  ClusterFacts Facts() const {
    ClusterFacts facts;
    facts.namespace_name = options.installation.namespace_name;
    facts.agents = Agents();
    facts.fleet = Fleet();
    facts.reports_expected =
        !known_spec || known_spec->node.cluster.node_state != api::Switch::kOff;
    facts.reports = reports ? static_cast<std::int64_t>(reports->size()) : 0;
    facts.complete = computed && marker.synced() && reports && reports->synced();
    facts.problems = Problems();
    return facts;
  }

  std::vector<std::string> Problems() const {
    std::vector<std::string> problems;
    if (!invalid.empty()) problems.push_back(invalid);
    for (const auto& [what, problem] : work.problems())
      if (problem.lasting) problems.push_back(problem.text);
    for (const std::string& text : marker.problems()) problems.push_back(text);
    if (problems.size() > kMostProblems) problems.resize(kMostProblems);
    return problems;
  }

  Numbers numbers() const {
    Numbers now{.policies = policies.size(),
                .nodes = marker.known(),
                .fleet = Fleet(),
                .agents = Agents(),
                .problems = Problems().size()};
    now.writes = {{"node", marker.writes()}, {"status", writer.writes()}, {"object", 0}};
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

  ReconcileLoop work;
  std::optional<Definitions> definitions;
  PolicyWatch watch;
  std::optional<Informer> reports;
  NodeMarker marker;
  NamespaceLabels labels;
  std::deque<OwnedObjects> owned;
  PolicyWriter writer;
};

Operator::Operator(protocol::kube::Api& api, Options options)
    : state_(std::make_shared<State>(api, std::move(options))) {}

Operator::~Operator() = default;

void Operator::Start() { state_->Start(); }
Operator::Numbers Operator::numbers() const { return state_->numbers(); }

}  // namespace penstock::cluster
