#include "operator/policy_writer.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "api/compat/policy_state.h"
#include "base/core/strings.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "operator/json_values.h"
#include "operator/names.h"
#include "operator/repeated_writes.h"
#include "protocol/kube/events.h"
#include "protocol/kube/reconcile_loop.h"
#include "protocol/kube/status_error.h"
#include "protocol/kube/work_queue.h"

namespace penstock::cluster {

using protocol::kube::ApiResponse;
using protocol::kube::EventRecorder;
using protocol::kube::WorkQueue;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kMostManagers = 5;  // that a message names
constexpr base::Duration kSpacing = 1s;
constexpr base::Duration kShown = 5s;  // by then the watch has delivered our last write
// After this time a status of which the server dropped a part is written once more: its definition
// may have the missing fields by now.
constexpr base::Duration kMade = 10min;
/// Between two Events about a status that is refused: of the same cause (a server keeps an Event
/// for an hour), and of different ones.
constexpr base::Duration kRefusalSaidAgain = 30min, kRefusalsSpacing = 1min;
constexpr base::Duration kRefusedAgain = 10s;  // between two attempts to write a finalizer
constexpr char kFinalizerNotWritten[] = "FinalizerNotWritten";  // reason of the Event
constexpr std::size_t kHolding = 1;  // what is written with the finalizer, which is always the same

/// With the version, no finalizer is lost that another client has written meanwhile.
Json FinalizerPatch(const PolicyObject& policy, bool wanted) {
  Json finalizers = Json::array();
  for (const Json& one : ListAt(policy.object, "/metadata/finalizers"))
    if (one != kFinalizer) finalizers.push_back(one);
  if (wanted) finalizers.push_back(kFinalizer);
  return {{"metadata",
           {{"resourceVersion", TextAt(policy.object, "/metadata/resourceVersion")},
            {"finalizers", finalizers}}}};
}

protocol::kube::ObjectReference ReferenceTo(const PolicyObject& policy) {
  const PolicyName name = NameOf(policy);
  return {name.api_version, name.kind, name.namespace_name, name.name, name.uid};
}

/// Who writes an object besides us, but for its status. Who removes a finalizer is not among them
/// by that alone: managed fields are of what there is.
std::vector<std::string> OtherManagersOf(const Json& object) {
  std::set<std::string> names;
  for (const Json& entry : ListAt(object, "/metadata/managedFields"))
    if (const std::string name = TextAt(entry, "/manager");
        name != kManager && TextAt(entry, "/subresource").empty() && names.size() < kMostManagers)
      names.insert(name);
  return {names.begin(), names.end()};
}

Json StatusIn(const Json& object) {
  const Json* found = Find(object, "/status");
  return found != nullptr && found->is_object() ? *found : Json::object();
}

}  // namespace

std::string KeyOf(const PolicyObject& policy) {
  return KeyOf(*policy.kind, TextAt(policy.object, "/metadata/namespace"),
               TextAt(policy.object, "/metadata/name"));
}

std::string KeyOf(const api::compat::PolicyKind& kind, const std::string& namespace_name,
                  const std::string& name) {
  return kind.plural + "/" + (kind.namespaced ? namespace_name + "/" : "") + name;
}

struct PolicyWriter::State : std::enable_shared_from_this<State> {
  State(protocol::kube::Api& a, const std::string& host, Callbacks c)
      : api(a), callbacks(std::move(c)), recorder(a, std::string(kManager), host) {}

  using Done = std::function<void(Status)>;

  void Begin() {
    queue.emplace(api.executor(), WorkQueue::Options{},
                  [this](const std::string& key, const Done& done) { Work(key, done); });
  }

  base::TimePoint Now() const { return api.executor().clock().Now(); }

  void Work(const std::string& key, const Done& done) {
    const PolicyObject* policy = callbacks.find(key);
    if (policy == nullptr) {
      Forget(key);
      return done({});
    }
    if (const std::string uid = NameOf(*policy).uid; uids[key] != uid) {
      Forget(key);  // another of that name
      uids[key] = uid;
    }
    ForgetProblem(key);
    const bool deleted = IsDeleted(*policy);
    if (deleted) return TakeBack(key, *policy, done);
    if (IsForeign(*policy)) {
      ReportState(key, *policy);
      return TakeBack(key, *policy, done);
    }
    if (callbacks.holds(*policy) && !HasFinalizer(*policy, kFinalizer)) {
      const base::TimePoint now = Now();
      const auto until = FinalizerWaitsUntil(key, now);
      if (!until) return SetFinalizer(key, *policy, true, done);
      queue->AddAfter(key, *until - now);
    }
    ReportState(key, *policy);
    WriteStatus(key, *policy, callbacks.status(*policy, AsWritten(key, *policy), MetaTime()), done);
  }

  /// Where others remove it, or the server has refused it: the status is written meanwhile.
  std::optional<base::TimePoint> FinalizerWaitsUntil(const std::string& key,
                                                     base::TimePoint now) const {
    if (const auto until = repeated.WaitsUntil(key, kHolding, now)) return until;
    const auto refusals = refused.find(key);
    if (refusals == refused.end()) return std::nullopt;
    const auto refusal = refusals->second.find(kFinalizerNotWritten);
    if (refusal == refusals->second.end()) return std::nullopt;
    const base::TimePoint until = refusal->second.at + kRefusedAgain;
    return until > now ? std::optional(until) : std::nullopt;
  }

  /// Unless another program may remove the finalizer again.
  void ForgetProblem(const std::string& key) {
    const base::TimePoint now = Now();
    if (const auto until = repeated.ContestedUntil(key, now))
      return queue->AddAfter(key, *until - now);
    if (problems.erase(key) > 0) callbacks.changed();
  }

  void ForgetOthers(const std::set<std::string>& keys) {
    const auto is_other = [&keys](const auto& one) { return !keys.contains(one.first); };
    for (const auto& one : uids)
      if (is_other(one)) repeated.Forget(one.first);
    std::erase_if(sent, is_other);
    std::erase_if(reported, is_other);
    std::erase_if(uids, is_other);
    std::erase_if(tried, is_other);
    std::erase_if(refused, is_other);
    std::erase_if(problems, is_other);
    std::erase_if(taken_back, [&keys](const std::string& key) { return !keys.contains(key); });
  }

  void Forget(const std::string& key) {
    sent.erase(key);
    reported.erase(key);
    uids.erase(key);
    tried.erase(key);
    refused.erase(key);
    problems.erase(key);
    repeated.Forget(key);
    taken_back.erase(key);
  }

  /// Of a policy that is being deleted, or that another operator has taken over. The status says
  /// what holds it.
  void TakeBack(const std::string& key, const PolicyObject& policy, const Done& done) {
    if (!HasFinalizer(policy, kFinalizer)) return done({});
    const std::vector<std::string> left = callbacks.left(key);
    if (!left.empty()) taken_back.erase(key);
    if (!left.empty() && IsForeign(policy)) return done({});
    if (!left.empty())
      return WriteStatus(key, policy,
                         StatusOfDeleted(policy, left, AsWritten(key, policy), MetaTime()), done);
    // Before the finalizer goes: where the answer to that is lost, so is the policy.
    if (taken_back.insert(key).second) ReportTakenBack(ReferenceTo(policy));
    SetFinalizer(key, policy, false, done);
  }

  /// A version is tried once: after success, and after a conflict, the watch delivers a newer one.
  void SetFinalizer(const std::string& key, const PolicyObject& policy, bool wanted,
                    const Done& done) {
    const std::string version = TextAt(policy.object, "/metadata/resourceVersion");
    Tried& last = tried[key];
    if (last.version == version && Now() - last.at < kShown) {
      queue->AddAfter(key, last.at + kShown - Now());
      return done({});
    }
    last = {version, Now()};
    Patch(
        key, FinalizerPatch(policy, wanted), "",
        [key, about = ReferenceTo(policy), wanted](State& self, const Result<ApiResponse>& answer) {
          if (answer.ok() && wanted) self.Held(key, about, answer);
          if (answer.ok() && !wanted) self.repeated.Forget(key);
          if (!answer.ok() && answer.error().code() != Code::kAborted) self.tried.erase(key);
          self.ReportRefusal(key, kFinalizerNotWritten,
                             (wanted ? "the finalizer " + std::string(kFinalizer) +
                                           " on this object, whose deletion then does not wait "
                                           "until everything is taken back,"
                                     : "to remove the finalizer " + std::string(kFinalizer) +
                                           " from this object, whose deletion waits for that,"),
                             answer);
        },
        done);
  }

  void Held(const std::string& key, const protocol::kube::ObjectReference& about,
            const Result<ApiResponse>& answer) {
    taken_back.erase(key);
    repeated.Wrote(key, kHolding, Now());
    const base::TimePoint now = Now();
    const auto until = repeated.ContestedUntil(key, now);
    if (!until) return;
    const auto object = protocol::kube::Parse(answer);
    const std::vector<std::string> others = OtherManagersOf(object.ok() ? *object : Json());
    const std::string who = others.empty()
                                ? "the API server's audit log names it"
                                : "field managers that write it: " + base::Join(others, ", ");
    problems[key] = about.kind + " " + about.name + ": another program (" + who +
                    ") removes the finalizer " + std::string(kFinalizer) +
                    " again and again, without which a deletion does not wait until everything is "
                    "taken back; let it leave metadata.finalizers alone";
    queue->AddAfter(key, *until - now);
    callbacks.changed();
  }

  void ReportTakenBack(const protocol::kube::ObjectReference& about) {
    const TakenBackOfNodes nodes = callbacks.taken_back();
    base::Log(nodes.has_given_up ? base::kWarn : base::kInfo, "policy taken back",
              {{"policy", about.kind + " " + about.name}, {"nodes", nodes.text}});
    const std::string all = nodes.has_given_up ? "what it caused was taken back, but not everywhere"
                                               : "everything that it caused was taken back";
    const std::string message =
        all + (nodes.text.empty() ? "" : ": its objects, and " + nodes.text);
    nodes.has_given_up ? recorder.Warning(about, "TakenBack", message)
                       : recorder.Normal(about, "TakenBack", message);
  }

  std::string MetaTime() const {  // as metav1.Time
    return base::FormatTime(api.executor().clock().Wall()).substr(0, 19) + "Z";
  }

  /// The status of the object. A server drops what the definition lacks: while the object has what
  /// the server made of our last write, it is what was written.
  Json AsWritten(const std::string& key, const PolicyObject& policy) const {
    Json found = StatusIn(policy.object);
    const auto last = sent.find(key);
    if (last == sent.end() || last->second.made != found) return found;
    return Now() - last->second.at < kMade ? last->second.status : found;
  }

  void WriteStatus(const std::string& key, const PolicyObject& policy, const Json& status,
                   const Done& done) {
    if (status.is_null() || status == AsWritten(key, policy)) return done({});
    Sent& last = sent[key];
    if (last.status == status && Now() - last.at < kShown) {
      queue->AddAfter(key, last.at + kShown - Now());
      return done({});
    }
    if (last.at != base::TimePoint{} && Now() - last.at < kSpacing) {
      queue->AddAfter(key, last.at + kSpacing - Now());
      return done({});
    }
    last = {status, Now(), {}};
    Patch(
        key, {{"status", MergePatchOf(StatusIn(policy.object), status)}}, "status",
        [key](State& self, const Result<ApiResponse>& answer) {
          if (answer.ok()) self.Remember(key, answer);
          self.ReportRefusal(key, "StatusNotWritten",
                             "the status of this object, which is out of date", answer);
        },
        done);
  }

  using Answered = std::function<void(State&, const Result<ApiResponse>&)>;
  void Patch(const std::string& key, const Json& patch, const std::string& subresource,
             Answered answered, const Done& done) {
    const PolicyObject* policy = callbacks.find(key);
    const protocol::kube::Resource resource{policy->kind->group, policy->kind->version,
                                            policy->kind->plural};
    ++writes;
    const PolicyName name = NameOf(*policy);
    api.Do(protocol::kube::Patch(resource, name.namespace_name, name.name,
                                 protocol::kube::kMergePatch, patch, kManager, subresource),
           base::IfAlive(this, [key, done, answered = std::move(answered)](
                                   State& self, const Result<ApiResponse>& answer) {
             answered(self, answer);
             self.Written(key, answer, done);
           }));
  }

  /// What the server made of a status, unless another client has changed it meanwhile.
  void Remember(const std::string& key, const Result<ApiResponse>& answer) {
    const auto object = protocol::kube::Parse(answer);
    const auto last = sent.find(key);
    if (!object.ok() || last == sent.end()) return;
    Json made = StatusIn(*object);
    if (Covers(last->second.status, made)) last->second.made = std::move(made);
  }

  void Written(const std::string& key, const Result<ApiResponse>& answer, const Done& done) {
    if (answer.ok()) {
      // A write may have waited for its turn behind those of nodes.
      if (const auto last = sent.find(key); last != sent.end()) last->second.at = Now();
      return done({});
    }
    sent.erase(key);
    if (answer.error().code() == Code::kNotFound) return done({});
    if (answer.error().code() != Code::kAborted)
      base::Log(base::kWarn, "policy not written",
                {{"policy", key}, {"why", answer.error().message()}});
    done(answer.error());
  }

  /// What cannot be written says nothing of that itself. `what` is refused, with `reason` in the
  /// Event; what may be over soon, as a server or a webhook starts, is waited for.
  void ReportRefusal(const std::string& key, const std::string& reason, const std::string& what,
                     const Result<ApiResponse>& answer) {
    auto& refusals = refused[key];
    if (answer.ok()) refusals.erase(reason);
    const PolicyObject* policy = answer.ok() ? nullptr : callbacks.find(key);
    if (policy == nullptr || answer.error().code() == Code::kNotFound) return;
    const std::string& why = answer.error().message();
    const bool may_pass =
        protocol::kube::NamesMissingRule(why) || protocol::kube::NamesUncalledWebhook(why);
    if (!may_pass && !protocol::kube::ReconcileLoop::IsRefusal(answer.error().code())) return;
    Refused& known = refusals[reason];
    known.at = Now();
    if (!may_pass) known.since.reset();
    if (may_pass && !known.since) known.since = Now();
    if (may_pass && Now() - *known.since < protocol::kube::kRolesAreKnown) return;
    // A webhook that cannot be called may be said with another port each time.
    const bool is_same = known.why == why || (protocol::kube::NamesUncalledWebhook(known.why) &&
                                              protocol::kube::NamesUncalledWebhook(why));
    const base::Duration spacing = is_same ? kRefusalSaidAgain : kRefusalsSpacing;
    if (!known.why.empty() && Now() - known.said < spacing) return;
    known.why = why;
    known.said = Now();
    recorder.Warning(ReferenceTo(*policy), reason,
                     "the API server refuses " + what +
                         " until what refuses it is corrected (a right, the definition of the "
                         "kind, an admission webhook): " +
                         why);
  }

  /// What was reported of a policy.
  struct Reported {
    std::string state;        // with the reason, and of an error with its message
    std::string fields;       // the message of FieldsServed, if that is False
    std::string definitions;  // that of DefinitionsApplied
    std::string operands;     // that of OperandsReplaced
  };

  /// The first state after a start is no change.
  void ReportState(const std::string& key, const PolicyObject& policy) {
    const PolicyState state = callbacks.state(policy, AsWritten(key, policy));
    if (state.state.empty()) return;
    const auto known = reported.find(key);
    const Reported before = known != reported.end() ? known->second : ReportedIn(policy);
    const Reported now{state.state + " " + state.reason + (state.error ? " " + state.message : ""),
                       state.fields.value_or(before.fields),
                       state.definitions.value_or(before.definitions),
                       state.operands_left.value_or(before.operands)};
    reported[key] = now;
    if (now.state != before.state) ReportState(key, ReferenceTo(policy), state);
    if (now.fields != before.fields) ReportFields(ReferenceTo(policy), before.fields, state);
    if (now.definitions != before.definitions && !now.definitions.empty())
      recorder.Warning(ReferenceTo(policy), "DefinitionsKept", now.definitions);
    if (now.operands != before.operands && !now.operands.empty())
      recorder.Warning(ReferenceTo(policy), "OperandsLeft", now.operands);
  }

  void ReportState(const std::string& key, const protocol::kube::ObjectReference& about,
                   const PolicyState& state) {
    base::Log(
        base::kInfo, "policy state changed",
        {{"policy", key}, {"state", state.state + " " + state.reason}, {"why", state.message}});
    state.state == "ready" ? recorder.Normal(about, state.reason, state.message)
                           : recorder.Warning(about, state.reason, state.message);
  }

  /// Those that the condition did not have.
  void ReportFields(const protocol::kube::ObjectReference& about, const std::string& before,
                    const PolicyState& state) {
    std::vector<std::string> added;
    for (const std::string& sentence : state.not_served)
      if (before.find(sentence) == std::string::npos) added.push_back(sentence);
    if (!added.empty()) recorder.Warning(about, "FieldsNotServed", base::Join(added, "; "));
  }

  /// What the status of an object says, of which nothing was reported by this process.
  static Reported ReportedIn(const PolicyObject& policy) {
    std::string reason, error, fields, definitions, operands;
    for (const Json& condition : ListAt(policy.object, "/status/conditions")) {
      const std::string type = TextAt(condition, "/type"), message = TextAt(condition, "/message");
      const bool is_true = TextAt(condition, "/status") == "True";
      if (type == "Ready") reason = TextAt(condition, "/reason");
      if (type == "Error" && is_true) error = " " + message;
      if (type == "FieldsServed" && !is_true) fields = message;
      if (type == "DefinitionsApplied" && !is_true) definitions = message;
      if (type == "OperandsReplaced" && !is_true) operands = message;
    }
    return {api::compat::StateOfPolicy(policy.object) + " " + reason + error, fields, definitions,
            operands};
  }

  protocol::kube::Api& api;
  const Callbacks callbacks;
  struct Sent {
    Json status;
    base::TimePoint at{};
    Json made;  // of it by the server; null: not known
  };
  std::map<std::string, Sent> sent;
  struct Tried {
    std::string version;
    base::TimePoint at{};
  };
  std::map<std::string, Tried> tried;           // the last change of the finalizer
  RepeatedWrites repeated;                      // of the finalizer, which others remove
  std::map<std::string, std::string> problems;  // of policies of which they do again and again
  std::set<std::string> taken_back;             // policies of which all was taken back
  std::map<std::string, std::string> uids;      // of the policies with these keys
  struct Refused {
    std::optional<base::TimePoint> since;  // of what may be over soon
    base::TimePoint at{}, said{};
    std::string why;  // as last said
  };
  std::map<std::string, std::map<std::string, Refused>> refused;  // writes, by reasons of Events
  std::map<std::string, Reported> reported;
  std::uint64_t writes = 0;
  EventRecorder recorder;
  std::optional<WorkQueue> queue;
};

PolicyWriter::PolicyWriter(protocol::kube::Api& api, const std::string& host, Callbacks callbacks)
    : state_(std::make_shared<State>(api, host, std::move(callbacks))) {
  state_->Begin();
}

PolicyWriter::~PolicyWriter() = default;

void PolicyWriter::Soon(const std::string& key) { state_->queue->Add(key); }
void PolicyWriter::ForgetOthers(const std::set<std::string>& keys) { state_->ForgetOthers(keys); }
std::size_t PolicyWriter::remembered() const {
  return std::max({state_->sent.size(), state_->reported.size(), state_->uids.size(),
                   state_->tried.size(), state_->problems.size(), state_->taken_back.size(),
                   state_->refused.size()});
}
std::uint64_t PolicyWriter::writes() const { return state_->writes; }

std::vector<std::string> PolicyWriter::problems() const {
  std::vector<std::string> texts;
  for (const auto& [key, text] : state_->problems) texts.push_back(text);
  return texts;
}

}  // namespace penstock::cluster
