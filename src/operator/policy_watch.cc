#include "operator/policy_watch.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/lifetime.h"
#include "base/log.h"
#include "operator/json_values.h"
#include "operator/policy_writer.h"
#include "protocol/kube/informer.h"

namespace penstock::cluster {

using api::compat::PolicyKind;
using protocol::kube::Informer;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMostPolicies = 100;   // of a kind
constexpr base::Duration kListAgain = 1min;  // while there are more
constexpr base::Duration kServed = 1min;     // a server that starts serves all kinds by then

std::vector<const PolicyKind*> AllKinds() {
  std::vector<const PolicyKind*> kinds;
  for (const PolicyKind& kind : api::compat::PolicyKinds()) kinds.push_back(&kind);
  kinds.push_back(&api::compat::PenstockKind());
  return kinds;
}

}  // namespace

struct PolicyWatch::State : std::enable_shared_from_this<State> {
  State(protocol::kube::Api& a, std::string n, Callbacks c)
      : api(a), space(std::move(n)), callbacks(std::move(c)) {}

  void Start(const PolicyKind& kind) {
    Informer::Options options;
    options.resource = {kind.group, kind.version, kind.plural};
    if (kind.namespaced) options.namespace_name = space;
    options.without = {"/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration"};
    options.most_objects = kMostPolicies;
    options.most_bytes = 16u << 20;
    auto& informer = informers[&kind];
    informer = std::make_unique<Informer>(
        api, options,
        Informer::Handlers{.changed = [this, &kind](const Json& object) { Seen(kind, object); },
                           .removed =
                               [this, &kind](const auto& in, const auto& name) {
                                 policies.erase(KeyOf(kind, in, name));
                                 callbacks.changed();
                               },
                           .synced = [this, &kind] { Synced(kind); },
                           .problem = [this, &kind](const Status& why) { OnProblem(kind, why); }});
    informer->Start();
  }

  void Seen(const PolicyKind& kind, const Json& object) {
    PolicyObject policy{&kind, object};
    std::string key = KeyOf(policy);
    policies.insert_or_assign(std::move(key), std::move(policy));
    callbacks.changed();
  }

  /// Those that went while a new list was waited for were reported by none.
  void Synced(const PolicyKind& kind) {
    unserved_since.erase(&kind);
    absent.erase(&kind);
    const Informer& informer = *informers.at(&kind);
    if (informer.complete()) callbacks.problem(kind.plural, {});
    std::erase_if(policies, [&](const auto& one) {
      const PolicyObject& policy = one.second;
      return policy.kind == &kind &&
             informer.Find(TextAt(policy.object, "/metadata/namespace"),
                           TextAt(policy.object, "/metadata/name")) == nullptr;
    });
    callbacks.changed();
  }

  void OnProblem(const PolicyKind& kind, const Status& why) {
    const Informer& informer = *informers.at(&kind);
    if (!informer.complete()) return OnTooMany(kind);
    // Of a kind that was served and has objects, only another operator removes the definition.
    const bool may_go = !informer.synced() || !kind.foreign_finalizer.empty();
    const bool unserved = !why.ok() && why.error().code() == Code::kNotFound && may_go;
    callbacks.problem(kind.plural, unserved ? Status() : why);
    if (unserved) return WaitForKind(kind);
    unserved_since.erase(&kind);
  }

  /// An informer lists again only after a break: here it is to notice that there is room again.
  void OnTooMany(const PolicyKind& kind) {
    callbacks.problem(kind.plural, Error(Code::kFailedPrecondition, TooMany(kind)));
    if (!listed_later.insert(&kind).second) return;
    api.executor().PostAfter(kListAgain, base::IfAlive(this, [&kind](State& self) {
                               self.listed_later.erase(&kind);
                               self.Start(kind);
                             }));
  }

  /// A server that starts does not serve all kinds at first. One that lacks a definition, since
  /// someone else applies them, or has removed it, has no objects of the kind.
  void WaitForKind(const PolicyKind& kind) {
    if (absent.contains(&kind) || !unserved_since.emplace(&kind, Now()).second) return;
    api.executor().PostAfter(kServed, base::IfAlive(this, [&kind](State& self) {
                               const auto since = self.unserved_since.find(&kind);
                               if (since == self.unserved_since.end()) return;
                               if (self.Now() - since->second >= kServed) self.IsAbsent(kind);
                             }));
  }

  /// The new informer reports all objects again, should the kind come back with the same ones.
  void IsAbsent(const PolicyKind& kind) {
    base::Log(base::kWarn, "kind of policies not served",
              {{"definition", kind.plural + "." + kind.group}});
    unserved_since.erase(&kind);
    absent.insert(&kind);
    std::erase_if(policies, [&](const auto& one) { return one.second.kind == &kind; });
    Start(kind);
    callbacks.changed();
  }

  base::TimePoint Now() const { return api.executor().clock().Now(); }

  using Done = std::function<void(const Status&)>;

  /// From the kind of this number on, one after another.
  void Confirm(std::size_t number, const Done& done) {
    const std::vector<const PolicyKind*> kinds = AllKinds();
    while (number < kinds.size() &&
           (!kinds[number]->not_served.empty() || absent.contains(kinds[number])))
      ++number;
    if (number == kinds.size()) return done({});
    const PolicyKind& kind = *kinds[number];
    const protocol::kube::Resource resource{kind.group, kind.version, kind.plural};
    api.Do({.path = resource.Path(kind.namespaced ? space : ""),
            .query = {{"limit", std::to_string(kMostPolicies)}},
            .accept = std::string(protocol::kube::kMetadataOfLists)},
           base::IfAlive(this, [&kind, number, done](State& self, const auto& answer) {
             const auto list = protocol::kube::Parse(answer);
             if (!list.ok() && list.error().code() == Code::kNotFound)
               return self.ConfirmWithout(kind, number, done);
             if (!list.ok()) return done(list.error());
             self.missing_since.erase(&kind);
             for (const Json& one : ListAt(*list, "/items"))
               if (std::string key = self.KeyOfUnknown(kind, one); !key.empty())
                 return done(Error(Code::kUnavailable,
                                   key + " is not known yet: what the policies want is not "
                                         "decided until the watch of its kind has shown it"));
             self.Confirm(number + 1, done);
           }));
  }

  /// Of a kind that is not served for long enough there are no objects.
  void ConfirmWithout(const PolicyKind& kind, std::size_t number, const Done& done) {
    const auto since = missing_since.emplace(&kind, Now()).first->second;
    if (Now() - since >= kServed) return Confirm(number + 1, done);
    done(Error(Code::kUnavailable, kind.plural + "." + kind.group + " are not served"));
  }

  /// Empty: it is known.
  std::string KeyOfUnknown(const PolicyKind& kind, const Json& listed) const {
    std::string key =
        KeyOf(kind, TextAt(listed, "/metadata/namespace"), TextAt(listed, "/metadata/name"));
    const auto known = policies.find(key);
    const bool same = known != policies.end() && TextAt(known->second.object, "/metadata/uid") ==
                                                     TextAt(listed, "/metadata/uid");
    return same ? "" : key;
  }

  bool Knows(const PolicyKind& kind) const {
    const auto found = informers.find(&kind);
    if (found == informers.end()) return false;
    return absent.contains(&kind) || (found->second->synced() && found->second->complete());
  }

  std::string TooMany(const PolicyKind& kind) const {
    return "there are more " + kind.plural + (kind.namespaced ? " in the namespace " + space : "") +
           " than " + std::to_string(kMostPolicies) +
           ", or than 16 MiB of them: until some are deleted, no change of any policy takes effect";
  }

  protocol::kube::Api& api;
  const std::string space;
  const Callbacks callbacks;
  std::map<std::string, PolicyObject> policies;
  std::map<const PolicyKind*, std::unique_ptr<Informer>> informers;
  std::set<const PolicyKind*> listed_later;
  std::map<const PolicyKind*, base::TimePoint> unserved_since;
  std::set<const PolicyKind*> absent;                          // for long enough
  std::map<const PolicyKind*, base::TimePoint> missing_since;  // when it was to be confirmed
};

PolicyWatch::PolicyWatch(protocol::kube::Api& api, std::string namespace_name, Callbacks callbacks)
    : state_(std::make_shared<State>(api, std::move(namespace_name), std::move(callbacks))) {}

PolicyWatch::~PolicyWatch() = default;

void PolicyWatch::Start(const std::string& definition) {
  for (const PolicyKind* kind : AllKinds())
    if (definition == kind->plural + "." + kind->group && !state_->informers.contains(kind))
      state_->Start(*kind);
}

void PolicyWatch::Confirm(std::function<void(const base::Status& all_are_known)> done) {
  state_->Confirm(0, std::move(done));
}

bool PolicyWatch::synced() const {
  return std::ranges::all_of(AllKinds(), [this](const PolicyKind* kind) {
    return !kind->not_served.empty() || state_->Knows(*kind);
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
