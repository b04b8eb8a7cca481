// An object agrees if it has the hash of what is wanted, and all of it. A server may write a value
// in another form ("1000m" as "1"): what it answered to our write is accepted, too.
#include "operator/owned_objects.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>
#include <utility>

#include "base/lifetime.h"
#include "base/log.h"
#include "operator/adoption.h"
#include "operator/fleet_state.h"
#include "operator/json_values.h"
#include "operator/names.h"
#include "operator/repeated_writes.h"
#include "protocol/kube/informer.h"

namespace penstock::cluster {

using protocol::kube::ApiCall;
using protocol::kube::ApiResponse;
using protocol::kube::Informer;
using namespace std::chrono_literals;

namespace {

constexpr base::Duration kEcho = 5s;  // a watch that delivers our write later has a problem
constexpr base::Duration kDeleting = 1min;
constexpr base::Duration kLookAgain = 30s;  // for an object that the watch does not show
constexpr const char* kAbsent = "absent";   // in place of a version

std::string HashIn(const Json& object) {
  return TextAt(object, "/metadata/annotations/penstock.io~1applied");
}

/// What clients write of an object.
Json ContentOf(Json object) {
  object.erase("status");
  if (const auto metadata = object.find("metadata"); metadata != object.end())
    for (const char* key : {"resourceVersion", "generation", "managedFields"}) metadata->erase(key);
  return object;
}

std::size_t HashOf(const Json& wanted) { return std::hash<std::string>()(HashIn(wanted)); }

/// "v1", "monitoring.coreos.com/v1".
std::string VersionOf(const protocol::kube::Resource& resource) {
  return resource.group.empty() ? resource.version : resource.group + "/" + resource.version;
}

std::string VersionIn(const Json& object) { return TextAt(object, "/metadata/resourceVersion"); }

}  // namespace

struct OwnedObjects::State : std::enable_shared_from_this<State> {
  State(protocol::kube::Api& a, const OwnedKind& k, std::string n, Callbacks c)
      : api(a), kind(k), space(k.namespaced ? std::move(n) : ""), callbacks(std::move(c)) {}

  void Start() {
    Informer::Options options;
    options.resource = kind.resource;
    options.namespace_name = space;
    options.label_selector = kSelector;
    options.most_objects = 1000;
    informer.emplace(
        api, options,
        Informer::Handlers{.changed = [this](const Json& object) { Seen(object); },
                           .removed = [this](const auto&, const auto& name) { Gone(name); },
                           .synced = [this] { callbacks.changed(); },
                           .problem =
                               [this](const Status& why) {
                                 watches = why.ok();
                                 const bool is_served =
                                     why.ok() || why.error().code() != Code::kNotFound;
                                 const bool is_new = std::exchange(served, is_served) != is_served;
                                 callbacks.problem(why);
                                 if (is_new) callbacks.changed();
                               }});
    informer->Start();
  }

  void Seen(const Json& object) {
    const std::string name = TextAt(object, "/metadata/name");
    names.insert(name);
    taken.erase(name);
    if (IsGoing(name)) Deleted(name);
    if (const auto echo = echoes.find(name);
        echo != echoes.end() && echo->second.version == VersionIn(object))
      echoes.erase(echo);
    callbacks.changed();
  }

  void Gone(const std::string& name) {
    names.erase(name);
    echoes.erase(name);
    deleted_at.erase(name);
    accepted.erase(name);
    let_go.erase(name);
    callbacks.changed();
  }

  base::TimePoint Now() const { return api.executor().clock().Now(); }
  std::shared_ptr<const Json> Found(const std::string& name) const {
    return informer ? informer->Find(space, name) : nullptr;
  }

  bool Agrees(const std::string& name, const Json& object) const {
    const auto found = Found(name);
    if (found == nullptr || HashIn(*found) != HashIn(object)) return false;
    if (Covers(*found, object)) return true;
    const auto known = accepted.find(name);
    return known != accepted.end() && known->second == ContentOf(*found);
  }

  /// Whether this is what was written last (empty: deleted), and the watch has yet to deliver it.
  /// An answer may come after the watch, too: then it waits for nothing, hence the limit.
  bool Echoes(const std::string& name, const std::string& hash) const {
    const auto echo = echoes.find(name);
    if (echo == echoes.end() || echo->second.hash != hash) return false;
    const base::Duration left = echo->second.at + kEcho - Now();
    if (left > 0s) callbacks.due_after(left);
    return left > 0s;
  }

  bool IsGoing(const std::string& name) const {
    const auto found = Found(name);
    return found != nullptr && !TextAt(*found, "/metadata/deletionTimestamp").empty();
  }

  bool IsExcess(const std::string& name) const {
    if (wanted.contains(name)) return false;
    const auto found = Found(name);
    return !keep || found == nullptr || !keep(*found);
  }

  /// Whether an object that is kept would go with a policy that is not the owner any more.
  bool IsToBeReleased(const std::string& name) const {
    if (owner.empty() || wanted.contains(name) || IsExcess(name) || IsGoing(name)) return false;
    const std::string controller = ControllerOf(*Found(name));
    return !controller.empty() && controller != owner;
  }

  /// After writes that another program took back.
  bool Waits(const std::string& name, const Json& object) const {
    const auto until = repeated.WaitsUntil(name, HashOf(object), Now());
    if (until) callbacks.due_after(*until - Now());
    return until.has_value();
  }

  /// By an object of someone else, when it was looked for last.
  bool IsTaken(const std::string& name) const {
    const auto seen = taken.find(name);
    if (seen == taken.end()) return false;
    const base::Duration left = seen->second + kLookAgain - Now();
    if (left > 0s) callbacks.due_after(left);
    return left > 0s;
  }

  // One pass over all objects.
  void Reconcile(std::function<void(Status)> end) {
    done = std::move(end);
    first_error.reset();
    todo.clear();
    if (!informer || !informer->synced() || !decided || IsMissing()) return End();
    for (const auto& [name, object] : wanted)
      if (!Agrees(name, object) && !Echoes(name, HashIn(object)) && !IsGoing(name) &&
          !IsTaken(name) && !Waits(name, object))
        todo.push_back(name);
    for (const std::string& name : names) {
      if ((IsOverdue(name) || (IsExcess(name) && !IsGoing(name))) && !Echoes(name, ""))
        todo.push_back(name);
      if (IsToBeReleased(name) && !Echoes(name, HashIn(*Found(name)))) todo.push_back(name);
    }
    Next();
  }

  void Next() {
    if (todo.empty()) return End();
    const std::string name = std::exchange(todo.back(), {});
    todo.pop_back();
    if (IsToBeReleased(name)) return Release(name);
    if (IsExcess(name) || IsOverdue(name)) return names.contains(name) ? Delete(name) : Next();
    if (kind.leaves_others && Found(name) == nullptr) return Look(name);
    Write(name);
  }

  /// Reads an object that the watch would not show. By a list, since it is what the operator may
  /// do.
  void Look(const std::string& name) {
    api.Do(
        {.path = kind.resource.Path(space), .query = {{"fieldSelector", "metadata.name=" + name}}},
        base::IfAlive(this, [name](State& self, const Result<ApiResponse>& answer) {
          self.Looked(name, answer);
        }));
  }

  void Looked(const std::string& name, const Result<ApiResponse>& answer) {
    const auto list = protocol::kube::Parse(answer);
    if (!list.ok()) {
      Failed(name, list.error());
      return Next();
    }
    const Json& found = ListAt(*list, "/items");
    const Belongs whose = found.empty() ? Belongs::kOurs : WhoseIs(found[0], policies);
    if (whose == Belongs::kOthers) {
      if (wanted.contains(name)) Leave(name);
      return Next();
    }
    taken.erase(name);
    if (whose == Belongs::kAdoptable) return Adopt(name, found[0]);
    Write(name, found.empty() ? kAbsent : VersionIn(found[0]));
  }

  void Leave(const std::string& name) {
    const bool is_new = taken.insert_or_assign(name, Now()).second;
    if (is_new) callbacks.changed();
    callbacks.due_after(kLookAgain);
  }

  void Adopt(const std::string& name, const Json& object) {
    ++writes;
    const Json adoption = AdoptionOf(object, VersionOf(kind.resource));
    api.Do(protocol::kube::Patch(kind.resource, space, name, protocol::kube::kMergePatch, adoption,
                                 kManager),
           base::IfAlive(this, [name](State& self, const Result<ApiResponse>& answer) {
             const auto adopted = protocol::kube::Parse(answer);
             if (adopted.ok()) return self.Write(name, VersionIn(*adopted));
             self.Failed(name, adopted.error());
             self.Next();
           }));
  }

  /// Its pods are not replaced by that. Once it is wanted again, it is written with its owner.
  void Release(const std::string& name) {
    ++writes;
    api.Do(protocol::kube::Patch(kind.resource, space, name, protocol::kube::kMergePatch,
                                 ReleaseOf(*Found(name)), kManager),
           base::IfAlive(this, [name](State& self, const Result<ApiResponse>& answer) {
             const auto object = protocol::kube::Parse(answer);
             if (object.ok()) {
               base::Log(base::kInfo, "object released from its policy",
                         {{"kind", self.kind.kind}, {"name", name}});
               self.Expect(name, *object);
             } else {
               self.Failed(name, object.error());
             }
             self.Next();
           }));
  }

  /// What is wanted may have changed while it was looked for. `seen`: the version that was found to
  /// be ours; the server refuses if it is another by now. Where there was none, fields that someone
  /// has written meanwhile are not taken from them. Empty: whatever is there is ours.
  void Write(const std::string& name, const std::string& seen = "") {
    const auto found = wanted.find(name);
    if (found == wanted.end()) return Next();
    Json object = found->second;
    if (!seen.empty() && seen != kAbsent) object["metadata"]["resourceVersion"] = seen;
    ++writes;
    api.Do(protocol::kube::Apply(kind.resource, space, object, kManager, seen != kAbsent),
           base::IfAlive(this, [name](State& self, const Result<ApiResponse>& answer) {
             self.Written(name, answer);
           }));
  }

  void Written(const std::string& name, const Result<ApiResponse>& answer) {
    const auto object = protocol::kube::Parse(answer);
    if (!object.ok()) {
      Failed(name, object.error());
      return Next();
    }
    base::Log(base::kInfo, "object written", {{"kind", kind.kind}, {"name", name}});
    accepted[name] = ContentOf(*object);
    // Without a watch it is not known whether anything was taken back.
    if (const auto want = wanted.find(name); want != wanted.end() && watches)
      repeated.Wrote(name, HashOf(want->second), Now());
    Expect(name, *object);
    Next();
  }

  /// That the watch delivers it.
  void Expect(const std::string& name, const Json& object) {
    const auto found = Found(name);
    if (found == nullptr || VersionIn(*found) != VersionIn(object))
      echoes[name] = {VersionIn(object), HashIn(object), Now()};
  }

  /// Pods of a DaemonSet go first, so that no agent runs after what it uses is gone; but those that
  /// a node that does not respond keeps would hold the name, too, of which there may be another one
  /// by then.
  void Delete(const std::string& name) {
    ++writes;
    repeated.Forget(name);
    const bool is_overdue = IsOverdue(name);
    const bool pods_first = kind.kind == "DaemonSet" && !is_overdue && !let_go.contains(name);
    ApiCall call = protocol::kube::Delete(kind.resource, space, name);
    call.query["propagationPolicy"] = pods_first ? "Foreground" : "Background";
    api.Do(std::move(call),
           base::IfAlive(this, [name, is_overdue](State& self, const Result<ApiResponse>& answer) {
             const bool gone = !answer.ok() && answer.error().code() == Code::kNotFound;
             if (!answer.ok() && !gone) {
               self.Failed(name, answer.error());
             } else {
               base::Log(base::kInfo, "object deleted", {{"kind", self.kind.kind}, {"name", name}});
               // The watch may have shown its end before.
               if (self.names.contains(name)) self.Deleted(name);
               if (is_overdue && self.names.contains(name)) self.let_go.insert(name);
               self.echoes[name] = {"", "", self.Now()};
             }
             self.Next();
           }));
  }

  /// By this operator, another, or a user. After a while it counts as gone: its node may be dead.
  void Deleted(const std::string& name) {
    if (deleted_at.emplace(name, Now()).second) callbacks.due_after(Patience(name));
  }

  base::Duration Patience(const std::string& name) const {
    const auto found = kind.kind == "DaemonSet" ? Found(name) : nullptr;
    return kDeleting + kPodTakes * AgentsOf(found.get()).desired;
  }

  void Failed(const std::string& name, const Error& why) {
    if (!first_error) first_error = why.Within(kind.kind + " " + name);
  }

  void End() {
    const auto end = std::exchange(done, nullptr);
    end(first_error ? Status(*first_error) : Status());
  }

  std::vector<std::string> Problems() const {
    std::vector<std::string> texts;
    const base::TimePoint now = Now();
    for (const auto& [name, until] : repeated.Contested(now)) {
      texts.push_back("another program takes back what is written again and again to " + kind.kind +
                      " " + name + "; `kubectl get -o yaml --show-managed-fields` names it");
      callbacks.due_after(until - now);
    }
    for (const auto& [name, at] : taken)
      texts.push_back(kind.kind + " " + name +
                      " is someone else's and stays as it is: delete or rename it; `kubectl get " +
                      kind.resource.plural + " " + name +
                      " -o yaml --show-managed-fields` shows whose it is");
    return texts;
  }

  /// Its definition may also have gone since.
  bool IsMissing() const {
    return kind.may_be_missing && (!informer || !informer->synced() || !served);
  }

  bool IsKnown() const { return informer && informer->synced() && decided; }

  std::vector<std::string> Left(const std::string& policy = "") const {
    std::vector<std::string> left;
    if (!IsKnown() || IsMissing()) return left;
    for (const std::string& name : names) {
      const auto want = wanted.find(name);
      const bool differs = want != wanted.end() ? !Agrees(name, want->second)
                                                : IsExcess(name) && !CountsAsGone(name);
      if (differs || GoesWith(name, policy)) left.push_back(kind.kind + " " + name);
    }
    return left;
  }

  /// Whether it would be deleted because the policy is.
  bool GoesWith(const std::string& name, const std::string& policy) const {
    const auto found = policy.empty() ? nullptr : Found(name);
    return found != nullptr && !IsGoing(name) && ControllerOf(*found) == policy;
  }

  bool CountsAsGone(const std::string& name) const {
    const auto at = deleted_at.find(name);
    return IsGoing(name) && at != deleted_at.end() && Now() - at->second >= Patience(name);
  }

  /// Whether its pods were waited for long enough. A driver may take longer to be unloaded, and
  /// none may begin beside it.
  bool IsOverdue(const std::string& name) const {
    const auto at = deleted_at.find(name);
    if (kind.kind != "DaemonSet" || !IsGoing(name) || at == deleted_at.end() ||
        let_go.contains(name) || IsDriverSet(*Found(name)))
      return false;
    const base::Duration left = at->second + Patience(name) - Now();
    if (left > 0s) callbacks.due_after(left);
    return left <= 0s;
  }

  bool AllAgrees() const {
    const bool there = std::ranges::all_of(wanted, [this](const auto& one) {
      return Agrees(one.first, one.second) || taken.contains(one.first);
    });
    return IsKnown() && there && Left().empty();
  }

  protocol::kube::Api& api;
  const OwnedKind& kind;
  const std::string space;
  const Callbacks callbacks;
  struct Echo {
    std::string version, hash;  // empty: of a deletion
    base::TimePoint at;
  };
  bool watches = true, served = true;
  bool decided = false;  // before it is known what is wanted, nothing is in excess
  std::map<std::string, Json> wanted;
  std::function<bool(const Json&)> keep;  // what is not wanted, and stays
  std::string owner;                      // uid of the policy that what is kept may go with
  std::set<std::string> names;            // of all objects there are
  std::map<std::string, Echo> echoes;
  std::map<std::string, Json> accepted;  // content after our last write
  std::map<std::string, base::TimePoint> deleted_at;
  std::set<std::string> let_go;                  // whose pods are not waited for
  std::set<std::string> policies;                // by uid
  std::map<std::string, base::TimePoint> taken;  // wanted, and when someone else's was seen last
  RepeatedWrites repeated;
  std::vector<std::string> todo;
  std::optional<Error> first_error;
  std::function<void(Status)> done;
  std::uint64_t writes = 0;
  std::optional<Informer> informer;
};

OwnedObjects::OwnedObjects(protocol::kube::Api& api, const OwnedKind& kind,
                           std::string namespace_name, Callbacks callbacks)
    : state_(std::make_shared<State>(api, kind, std::move(namespace_name), std::move(callbacks))) {}

OwnedObjects::~OwnedObjects() = default;

void OwnedObjects::Start() { state_->Start(); }
bool OwnedObjects::started() const { return state_->informer.has_value(); }
bool OwnedObjects::missing() const { return state_->IsMissing(); }
void OwnedObjects::Want(std::map<std::string, Json> objects, std::function<bool(const Json&)> keep,
                        std::string owner) {
  state_->decided = true;
  state_->wanted = std::move(objects);
  state_->keep = std::move(keep);
  state_->owner = std::move(owner);
  std::erase_if(state_->taken, [&wanted = state_->wanted](const auto& one) {
    return !wanted.contains(one.first);
  });
}
void OwnedObjects::SetPolicies(std::set<std::string> uids) { state_->policies = std::move(uids); }
void OwnedObjects::LetGo(const std::string& name) {
  if (state_->names.contains(name)) state_->let_go.insert(name);
}
void OwnedObjects::Reconcile(std::function<void(Status)> done) {
  state_->Reconcile(std::move(done));
}
bool OwnedObjects::agrees() const { return state_->AllAgrees(); }
bool OwnedObjects::known() const { return state_->IsKnown(); }
std::vector<std::string> OwnedObjects::left(const std::string& policy) const {
  return state_->Left(policy);
}
const Json* OwnedObjects::Find(const std::string& name) const {
  return state_->Found(name).get();  // the informer keeps it
}
std::uint64_t OwnedObjects::writes() const { return state_->writes; }
std::vector<std::string> OwnedObjects::problems() const { return state_->Problems(); }

}  // namespace penstock::cluster
