// A Node's managed fields say whose its labels are. They are as large as all the rest of its
// metadata, so the watch leaves them out, and here they are read once.
#include "operator/agent_traces.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "api/compat/policy_kinds.h"
#include "api/node_state.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "operator/json_values.h"
#include "operator/names.h"
#include "protocol/kube/node_fields.h"
#include "protocol/kube/status_error.h"
#include "protocol/kube/work_queue.h"

namespace penstock::cluster {

using protocol::kube::ApiCall;
using protocol::kube::ApiResponse;
using protocol::kube::IsOfAnother;
using protocol::kube::WorkQueue;

namespace {

// Names that agents have (src/adapter/cluster). A manager's name is chosen by who writes, and only
// what these and the operator's alone own goes.
constexpr std::string_view kLabelsManager = "penstock-labels",
                           kConditionManager = "penstock-condition",
                           kClientsManager = "penstock-clients", kPaused = "paused-for-",
                           kReadyCondition = "penstock.io/AcceleratorsReady";
constexpr const char* kPage = "50";  // whoever may write Nodes can make each 1 MiB large
constexpr char kTheNodes[] = "nodes", kTheReports[] = "nodestates";

const protocol::kube::Resource kTracedNodes{"", "v1", "nodes"};
/// As that of the labels (NodeMarker).
constexpr WorkQueue::Options kTracePace{.per_second = 400, .burst = 100, .at_once = 8};

const protocol::kube::Resource& NodeStates() {
  static const protocol::kube::Resource kind{std::string(api::kNodeStateGroup),
                                             std::string(api::kNodeStateVersion),
                                             std::string(api::kNodeStatePlural)};
  return kind;
}

ApiCall WithoutCondition(const std::string& node, const std::string& uid) {
  return protocol::kube::Patch(kTracedNodes, "", node, protocol::kube::kStrategicMergePatch,
                               protocol::kube::WithoutCondition(kReadyCondition, uid), kManager,
                               "status");
}

/// Only labels that the operator writes, with values that it or an agent of it has written: a
/// node's credentials may remove these anyway.
std::set<std::string> ClientLabelsOf(const Json& node) {
  auto marks = protocol::kube::OwnedAlone(
      node,
      [](const Json& entry) {
        return TextAt(entry, "/manager") == kClientsManager &&
               TextAt(entry, "/subresource").empty();
      },
      [](const std::string& manager) { return manager == kClientsManager || manager == kManager; });
  const auto usual = api::compat::AllMarks().labels;
  const auto labels = TextsAt(node, "/metadata/labels");
  std::erase_if(marks.labels, [&](const std::string& key) {
    const auto own = usual.find(key);
    const auto now = labels.find(key);
    return own == usual.end() || now == labels.end() ||
           (now->second != own->second && !now->second.starts_with(kPaused));
  });
  return std::move(marks.labels);
}

}  // namespace

NodeTrace TraceOn(const Json& node) {
  NodeTrace trace{.uid = TextAt(node, "/metadata/uid"),
                  .condition = protocol::kube::IsManagedBy(node, kConditionManager, "status")};
  trace.marks = protocol::kube::OwnedAlone(
      node,
      [](const Json& entry) {
        return TextAt(entry, "/manager") == kLabelsManager && protocol::kube::MayBeTakenBack(entry);
      },
      // What both own, the operator has left to the agents.
      [](const std::string& manager) { return manager == kLabelsManager || manager == kManager; });
  trace.marks.labels.merge(ClientLabelsOf(node));
  return trace;
}

struct AgentTraces::State : std::enable_shared_from_this<State> {
  State(protocol::kube::Api& a, std::function<void()> c) : api(a), changed(std::move(c)) {}

  using Done = std::function<void(Status)>;

  void TakeBack() {
    if (queue) return;
    queue.emplace(api.executor(), kTracePace,
                  [this](const std::string& key, const Done& done) { Work(key, done); });
    unread = {kTheNodes, kTheReports};
    for (const std::string& list : unread) queue->Add(list);
  }

  /// What is answered later is of an earlier time.
  void Forget() {
    ++times;
    queue.reset();
    unread.clear();
    nodes.clear();
    reports.clear();
    gone.clear();
    problems.clear();
  }

  /// Keys: of a list, or "nodes/n1", "nodestates/n1".
  void Work(const std::string& key, const Done& done) {
    const std::string::size_type slash = key.find('/');
    if (slash == std::string::npos) return List(key, "", done);
    const std::string name = key.substr(slash + 1);
    if (key.starts_with(kTheReports)) return Delete(key, name, done);
    const auto found = nodes.find(name);
    if (found == nodes.end()) return done({});
    const NodeTrace& trace = found->second;
    if (trace.condition)
      return Write(
          key, name, WithoutCondition(name, trace.uid),
          [](NodeTrace& one) { one.condition = false; }, done);
    RemoveMarks(key, name, done);
  }

  /// The Node is another version since its condition went, and a user may have written a label.
  void RemoveMarks(const std::string& key, const std::string& name, const Done& done) {
    api.Do(protocol::kube::Get(kTracedNodes, "", name),
           Answer([key, name, done](State& self, const Result<ApiResponse>& answer) {
             const auto node = protocol::kube::Parse(answer);
             if (!node.ok() && !IsOfAnother(node.error()))
               return self.Failed(key, node.error(), done);
             const auto found = self.nodes.find(name);
             if (found == self.nodes.end()) return done({});
             const NodeTrace now = node.ok() ? TraceOn(*node) : NodeTrace{};
             if (now.uid == found->second.uid && !now.marks.empty())
               return self.Write(
                   key, name,
                   protocol::kube::Patch(kTracedNodes, "", name, protocol::kube::kMergePatch,
                                         protocol::kube::Without(now.marks, *node), kManager),
                   [](NodeTrace& one) { one.marks = {}; }, done);
             self.nodes.erase(found);
             self.Ended(key, done);
           }));
  }

  // What there is.

  void List(const std::string& list, const std::string& next, const Done& done) {
    const bool is_of_nodes = list == kTheNodes;
    ApiCall call{.path = (is_of_nodes ? kTracedNodes : NodeStates()).Path(),
                 .query = {{"limit", kPage}},
                 .accept = std::string(protocol::kube::kMetadataOfLists)};
    if (!next.empty()) call.query["continue"] = next;
    api.Do(std::move(call), Answer([list, done](State& self, const Result<ApiResponse>& answer) {
             const auto page = protocol::kube::Parse(answer);
             const bool is_missing = !page.ok() && page.error().code() == Code::kNotFound;
             if (!page.ok() && !is_missing) return self.Failed(list, page.error(), done);
             if (page.ok()) self.Found(list, ListAt(*page, "/items"));
             const std::string more = page.ok() ? TextAt(*page, "/metadata/continue") : "";
             if (!more.empty()) return self.List(list, more, done);
             self.unread.erase(list);
             self.Ended(list, done);
           }));
  }

  void Found(const std::string& list, const Json& items) {
    for (const Json& item : items) {
      const std::string name = TextAt(item, "/metadata/name");
      if (list == kTheReports) {
        reports.insert(name);
      } else if (const NodeTrace trace = TraceOn(item); trace.any()) {
        nodes[name] = trace;
      } else {
        continue;
      }
      queue->Add(list + "/" + name);
    }
  }

  // What goes.

  /// A Node that the server refuses as it would be then stays as it is: no other attempt helps.
  void Write(const std::string& key, const std::string& name, ApiCall call, void (*did)(NodeTrace&),
             const Done& done) {
    ++writes;
    api.Do(std::move(call),
           Answer([key, name, did, done](State& self, const Result<ApiResponse>& answer) {
             const bool is_gone = !answer.ok() && IsOfAnother(answer.error());
             const bool is_final = !answer.ok() && answer.error().code() == Code::kInvalidArgument;
             if (!answer.ok() && !is_gone && !is_final)
               return self.Failed(key, answer.error(), done);
             if (is_final && !is_gone) self.LogThatItStays(key, answer.error());
             const auto found = self.nodes.find(name);
             if (found == self.nodes.end()) return done({});
             NodeTrace& trace = found->second;
             did(trace);
             if (!is_gone && trace.any()) return self.Work(key, done);
             self.nodes.erase(found);
             if (answer.ok()) self.gone.insert(name);
             self.Ended(key, done);
           }));
  }

  /// One that has a finalizer of someone else's is theirs.
  void Delete(const std::string& key, const std::string& name, const Done& done) {
    if (!reports.contains(name)) return done({});
    ++writes;
    api.Do(protocol::kube::Delete(NodeStates(), "", name),
           Answer([key, name, done](State& self, const Result<ApiResponse>& answer) {
             if (!answer.ok() && answer.error().code() != Code::kNotFound)
               return self.Failed(key, answer.error(), done);
             self.reports.erase(name);
             self.gone.insert(name);
             self.Ended(key, done);
           }));
  }

  void Ended(const std::string& key, const Done& done) {
    const bool had_problem = problems.erase(key) > 0;
    if (had_problem || IsSettled()) changed();
    done({});
  }

  static void LogThatItStays(const std::string& key, const Error& why) {
    base::Log(base::kWarn, "what an agent wrote stays", {{"of", key}, {"why", why.message()}});
  }

  void Failed(const std::string& key, const Error& why, const Done& done) {
    if (why.code() != Code::kAborted && problems[key] != why.message()) {
      problems[key] = why.message();
      LogThatItStays(key, why);
      changed();
    }
    done(why);
  }

  using Answered = std::function<void(State&, const Result<ApiResponse>&)>;
  protocol::kube::Api::Done Answer(Answered answered) {
    return base::IfAlive(this, [answered = std::move(answered), asked = times](
                                   State& self, const Result<ApiResponse>& answer) {
      if (asked == self.times) answered(self, answer);
    });
  }

  bool IsSettled() const { return queue && unread.empty() && nodes.empty() && reports.empty(); }

  protocol::kube::Api& api;
  const std::function<void()> changed;
  std::set<std::string> unread;            // lists
  std::map<std::string, NodeTrace> nodes;  // of which something is left
  std::set<std::string> reports, gone;  // NodeStates that are left; nodes of which something went
  std::map<std::string, std::string> problems;  // by key
  std::uint64_t writes = 0, times = 0;
  std::optional<WorkQueue> queue;  // empty: nothing is taken back
};

AgentTraces::AgentTraces(protocol::kube::Api& api, std::function<void()> changed)
    : state_(std::make_shared<State>(api, std::move(changed))) {}

AgentTraces::~AgentTraces() = default;

void AgentTraces::TakeBack() { state_->TakeBack(); }
void AgentTraces::Forget() { state_->Forget(); }
bool AgentTraces::settled() const { return state_->IsSettled(); }
bool AgentTraces::listed() const { return state_->queue && state_->unread.empty(); }
std::uint64_t AgentTraces::writes() const { return state_->writes; }

std::vector<std::string> AgentTraces::unsettled() const {
  std::set<std::string> names = state_->reports;
  for (const auto& [name, trace] : state_->nodes) names.insert(name);
  return {names.begin(), names.end()};
}

std::vector<std::string> AgentTraces::taken_back() const {
  return {state_->gone.begin(), state_->gone.end()};
}

std::vector<std::string> AgentTraces::problems() const {
  std::set<std::string> texts;
  for (const auto& [key, text] : state_->problems) texts.insert(text);
  return {texts.begin(), texts.end()};
}

}  // namespace penstock::cluster
