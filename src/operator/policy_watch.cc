#include "operator/policy_watch.h"

#include <algorithm>
#include <utility>

#include "operator/json_values.h"
#include "operator/policy_writer.h"
#include "protocol/kube/informer.h"

namespace penstock::cluster {

using api::compat::PolicyKind;
using protocol::kube::Informer;

namespace {

std::vector<const PolicyKind*> AllKinds() {
  std::vector<const PolicyKind*> kinds;
  for (const PolicyKind& kind : api::compat::PolicyKinds()) kinds.push_back(&kind);
  kinds.push_back(&api::compat::PenstockKind());
  return kinds;
}

}  // namespace

struct PolicyWatch::State {
  State(protocol::kube::Api& a, Callbacks c) : api(a), callbacks(std::move(c)) {}

  void Start(const PolicyKind& kind) {
    Informer::Options options;
    options.resource = {kind.group, kind.version, kind.plural};
    options.without = {"/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"};
    options.most_objects = 100;
    options.most_bytes = 16u << 20;
    auto& informer = informers[&kind];
    informer = std::make_unique<Informer>(
        api, options,
        Informer::Handlers{
            .changed = [this, &kind](const Json& object) { Seen(kind, object); },
            .removed = [this, &kind](const auto&, const auto& name) { Gone(kind, name); },
            .synced = [this] { callbacks.changed(); },
            .problem = [this, &kind](const Status& why) { callbacks.problem(kind.plural, why); }});
    informer->Start();
  }

  void Seen(const PolicyKind& kind, const Json& object) {
    PolicyObject policy{&kind, object};
    std::string key = KeyOf(policy);
    policies.insert_or_assign(std::move(key), std::move(policy));
    callbacks.changed();
  }

  void Gone(const PolicyKind& kind, const std::string& name) {
    policies.erase(kind.plural + "/" + name);
    callbacks.changed();
  }

  protocol::kube::Api& api;
  const Callbacks callbacks;
  std::map<std::string, PolicyObject> policies;
  std::map<const PolicyKind*, std::unique_ptr<Informer>> informers;
};

PolicyWatch::PolicyWatch(protocol::kube::Api& api, Callbacks callbacks)
    : state_(std::make_unique<State>(api, std::move(callbacks))) {}

PolicyWatch::~PolicyWatch() = default;

void PolicyWatch::Start(const std::string& definition) {
  for (const PolicyKind* kind : AllKinds())
    if (definition == kind->plural + "." + kind->group && !state_->informers.contains(kind))
      state_->Start(*kind);
}

bool PolicyWatch::synced() const {
  return std::ranges::all_of(AllKinds(), [this](const PolicyKind* kind) {
    const auto found = state_->informers.find(kind);
    return !kind->not_served.empty() ||
           (found != state_->informers.end() && found->second->synced());
  });
}

std::vector<PolicyObject> PolicyWatch::policies() const {
  std::vector<PolicyObject> all;
  for (const auto& [key, policy] : state_->policies) all.push_back(policy);
  return all;
}

const PolicyObject* PolicyWatch::Find(const std::string& key) const {
  const auto found = state_->policies.find(key);
  return found == state_->policies.end() ? nullptr : &found->second;
}

}  // namespace penstock::cluster
