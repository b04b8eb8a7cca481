// A node whose labels are as wanted is not read. Where it has labels that are not wanted, and may
// be ours, the whole Node is read once: its managed fields say whose they are.
#include "operator/node_marker.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/lifetime.h"
#include "base/log.h"
#include "operator/json_values.h"
#include "operator/names.h"
#include "operator/repeated_writes.h"
#include "protocol/kube/informer.h"
#include "protocol/kube/work_queue.h"

namespace penstock::cluster {

using protocol::kube::ApiCall;
using protocol::kube::ApiResponse;
using protocol::kube::Informer;
using protocol::kube::WorkQueue;
using namespace std::chrono_literals;

namespace {

const protocol::kube::Resource kNodes{"", "v1", "nodes"};

/// The client's two connections are the limit: a server that is slow gets the less requests. The
/// rate is for one that takes thousands of writes a second.
constexpr WorkQueue::Options kQueue{.per_second = 400, .burst = 100, .at_once = 8};

/// For what an answer leaves open. A program that changes what is written may leave it open again.
constexpr base::Duration kLeftOpen = 10s;

constexpr char kTakenBack[] =
    "another program takes back labels or annotations of a Node that are written again and again; "
    "`kubectl get -o yaml node ";

std::size_t ContentOf(const NodeMarksPlan& plan) {
  std::string content;
  for (const Texts* texts : {&plan.labels, &plan.annotations})
    for (const auto& [key, value] : *texts) content += key + "=" + value + ",";
  return std::hash<std::string>()(content);
}

}  // namespace

struct NodeMarker::State : std::enable_shared_from_this<State> {
  State(protocol::kube::Api& a, Callbacks c) : api(a), callbacks(std::move(c)) {}

  using Done = std::function<void(Status)>;

  void Begin() {
    queue.emplace(api.executor(), kQueue,
                  [this](const std::string& name, const Done& done) { Work(name, done); });
  }

  void Want(const api::PenstockSpec& now, bool is_wanted, const MarkKeys& before) {
    MarkKeys needed = KeysOf(now);
    needed.Add(before);
    const bool same = wanted == is_wanted && spec.marks == now.marks &&
                      spec.node.default_layout == now.node.default_layout && keys.Contains(needed);
    if (informer && same) return;
    spec = now;
    wanted = is_wanted;
    if (wanted) taken_back.clear();
    ++decisions;
    settled.clear();
    if (!informer || !keys.Contains(needed)) {
      keys.Add(needed);
      return Watch();
    }
    for (const auto& [name, node] : nodes) queue->Add(name);
  }

  void SetHostDrivers(std::set<std::string> names) {
    const std::set<std::string> before = std::exchange(host_drivers, std::move(names));
    std::set<std::string> changed;
    std::ranges::set_symmetric_difference(before, host_drivers,
                                          std::inserter(changed, changed.end()));
    if (!changed.empty()) ++decisions;
    for (const std::string& name : changed)
      if (const auto node = informer ? informer->Find("", name) : nullptr) Seen(*node);
  }

  NodeMarksPlan PlanFor(const std::string& name, const Json& node) const {
    return PlanMarks(node, spec, keys,
                     {.wanted = wanted, .has_host_driver = host_drivers.contains(name)});
  }

  void Watch() {
    nodes.clear();
    Informer::Options options;
    options.resource = kNodes;
    options.metadata_only = true;
    options.without = {"/spec", "/status"};
    options.reduce = [kept = keys](const Json& node) { return ReducedNode(node, kept); };
    options.packed = true;
    options.managed_fields = protocol::kube::ManagedFields::kKept;
    informer.emplace(
        api, options,
        Informer::Handlers{.changed = [this](const Json& node) { Seen(node); },
                           .removed = [this](const auto&, const auto& name) { Gone(name); },
                           .synced = [this] { callbacks.changed(); },
                           .problem = [this](const Status& why) { callbacks.problem(why); }});
    informer->Start();
  }

  void Seen(const Json& node) {
    const std::string name = TextAt(node, "/metadata/name");
    const NodeMarksPlan plan = PlanFor(name, node);
    nodes[name] = {plan.has_devices, {name, plan.opted_out, plan.host_driver}};
    settled.erase(name);
    if (!plan.differs && !plan.doubtful) {
      Settled(name);
    } else {
      queue->Add(name);
    }
    callbacks.changed();
  }

  void Gone(const std::string& name) {
    nodes.erase(name);
    settled.erase(name);
    problems.erase(name);
    repeated.Forget(name);
    callbacks.changed();
  }

  base::TimePoint Now() const { return api.executor().clock().Now(); }

  /// `node`: whole, with managed fields. `by`: `decisions` when the server was asked. If something
  /// else was decided meanwhile, or another program has written the node before or since, it is
  /// looked at again.
  void Answered(const std::string& name, const Json& node, std::uint64_t by) {
    // The watch has shown what is newer than this answer, or shows it soon.
    if (!informer->Learn(node)) return queue->AddAfter(name, kLeftOpen);
    const NodeMarksPlan plan = PlanFor(name, *informer->Find("", name));
    if (plan.differs || by != decisions) return queue->Add(name);
    if (plan.doubtful && IsLeft(node, plan)) return queue->AddAfter(name, kLeftOpen);
    Settled(name);
  }

  void Settled(const std::string& name) {
    if (!nodes.contains(name)) return;  // deleted while the answer was on its way
    ForgetProblem(name);
    if (settled.insert(name).second && settled.size() == nodes.size()) callbacks.changed();
  }

  /// Whether a Node (whole) has something of ours that is not wanted.
  bool IsLeft(const Json& node, const NodeMarksPlan& plan) const {
    return (MayBeApplied(plan) && AppliedMore(node, plan)) || !ExcessOf(node, plan, keys).empty();
  }

  /// Unless another program may take back what was written.
  void ForgetProblem(const std::string& name) {
    const base::TimePoint now = Now();
    if (const auto until = repeated.ContestedUntil(name, now))
      return queue->AddAfter(name, *until - now);
    if (problems.erase(name) > 0) callbacks.changed();
  }

  /// Work on one node.
  void Work(const std::string& name, const Done& done) {
    const auto node = informer ? informer->Find("", name) : nullptr;
    if (node == nullptr || settled.contains(name)) {
      ForgetProblem(name);  // of a write that is not needed any more
      return done({});
    }
    const NodeMarksPlan plan = PlanFor(name, *node);
    if (plan.differs) {
      const base::TimePoint now = Now();
      if (const auto until = repeated.WaitsUntil(name, ContentOf(plan), now)) {
        queue->AddAfter(name, *until - now);
        return done({});
      }
      if (!plan.doubtful && MayBeApplied(plan))
        return Write(name, plan, ApplyCall(*node, plan, informer->VersionOf("", name)), done);
    }
    if (plan.differs || plan.doubtful) return Look(name, done);
    Settled(name);
    done({});
  }

  static ApiCall ApplyCall(const Json& node, const NodeMarksPlan& plan,
                           const std::string& version) {
    return protocol::kube::Apply(kNodes, "", MarksObject(node, plan, version), kManager);
  }

  void Look(const std::string& name, const Done& done) {
    api.Do(protocol::kube::Get(kNodes, "", name),
           base::IfAlive(this, [name, done, by = decisions](State& self,
                                                            const Result<ApiResponse>& answer) {
             const auto node = protocol::kube::Parse(answer);
             if (!node.ok()) return self.Failed(name, node.error(), done);
             const NodeMarksPlan plan = self.PlanFor(name, ReducedNode(*node, self.keys));
             if (MayBeApplied(plan) && (plan.differs || AppliedMore(*node, plan)))
               return self.Write(name, plan,
                                 ApplyCall(*node, plan, TextAt(*node, "/metadata/resourceVersion")),
                                 done);
             if (plan.differs || self.IsLeft(*node, plan))
               return self.Write(
                   name, plan,
                   protocol::kube::Patch(kNodes, "", name, protocol::kube::kMergePatch,
                                         MarksPatch(*node, plan, ExcessOf(*node, plan, self.keys)),
                                         kManager),
                   done);
             self.Answered(name, *node, by);
             done({});
           }));
  }

  void Write(const std::string& name, const NodeMarksPlan& plan, ApiCall call, const Done& done) {
    ++writes;
    api.Do(std::move(call),
           base::IfAlive(this, [name, done, content = ContentOf(plan), by = decisions](
                                   State& self, const Result<ApiResponse>& answer) {
             const auto written = protocol::kube::Parse(answer);
             if (!written.ok()) return self.Failed(name, written.error(), done);
             self.Written(name, content);
             self.Answered(name, *written, by);
             done({});
           }));
  }

  void Written(const std::string& name, std::size_t content) {
    repeated.Wrote(name, content, Now());
    problems.erase(name);
    if (!wanted) taken_back.insert(name);
    if (!repeated.ContestedUntil(name, Now())) return;
    problems[name] = kTakenBack + name + " --show-managed-fields` names it";
    callbacks.changed();
  }

  void Failed(const std::string& name, const Error& why, const Done& done) {
    if (why.code() == Code::kNotFound) return done({});  // the watch reports the deletion
    // Another client was faster; the watch shows what it wrote.
    if (why.code() != Code::kAborted && problems[name] != why.message()) {
      problems[name] = why.message();
      base::Log(base::kWarn, "node not written", {{"node", name}, {"why", why.message()}});
      callbacks.changed();
    }
    done(why);
  }

  struct Known {
    bool has_devices = false;
    DeviceNode shown;
  };
  protocol::kube::Api& api;
  const Callbacks callbacks;
  api::PenstockSpec spec;
  bool wanted = false;
  MarkKeys keys;
  std::map<std::string, Known> nodes;
  std::set<std::string> settled, host_drivers, taken_back;
  std::map<std::string, std::string> problems;
  RepeatedWrites repeated;
  std::uint64_t writes = 0, decisions = 0;
  std::optional<WorkQueue> queue;
  std::optional<Informer> informer;
};

NodeMarker::NodeMarker(protocol::kube::Api& api, Callbacks callbacks)
    : state_(std::make_shared<State>(api, std::move(callbacks))) {
  state_->Begin();
}

NodeMarker::~NodeMarker() = default;

void NodeMarker::Want(const api::PenstockSpec& spec, bool wanted, const MarkKeys& before) {
  state_->Want(spec, wanted, before);
}

void NodeMarker::SetHostDrivers(std::set<std::string> nodes) {
  state_->SetHostDrivers(std::move(nodes));
}

bool NodeMarker::synced() const { return state_->informer && state_->informer->synced(); }

bool NodeMarker::settled() const {
  return synced() && state_->settled.size() == state_->nodes.size();
}

std::vector<std::string> NodeMarker::unsettled() const {
  std::vector<std::string> names;
  for (const auto& [name, node] : state_->nodes)
    if (!state_->settled.contains(name)) names.push_back(name);
  return names;
}

std::vector<std::string> NodeMarker::taken_back() const {
  return {state_->taken_back.begin(), state_->taken_back.end()};
}

std::vector<NodeMarker::DeviceNode> NodeMarker::nodes() const {
  std::vector<DeviceNode> found;
  for (const auto& [name, node] : state_->nodes)
    if (node.has_devices) found.push_back(node.shown);
  return found;
}

std::optional<NodeMarker::DeviceNode> NodeMarker::Find(const std::string& name) const {
  const auto found = state_->nodes.find(name);
  if (found == state_->nodes.end()) return std::nullopt;
  return found->second.shown;
}

std::size_t NodeMarker::known() const { return state_->nodes.size(); }
std::uint64_t NodeMarker::writes() const { return state_->writes; }

std::vector<std::string> NodeMarker::problems() const {
  std::set<std::string> texts;
  for (const auto& [name, text] : state_->problems) texts.insert(text);
  return {texts.begin(), texts.end()};
}

}  // namespace penstock::cluster
