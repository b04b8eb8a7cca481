#include "operator/driver/node_writer.h"

#include <utility>

#include "base/core/json_text.h"
#include "base/lifetime.h"
#include "base/log.h"
#include "operator/json_values.h"
#include "operator/names.h"
#include "protocol/kube/work_queue.h"

namespace penstock::cluster {

using protocol::kube::ApiCall;
using protocol::kube::ApiResponse;
using protocol::kube::WorkQueue;
using namespace std::chrono_literals;

namespace {

const protocol::kube::Resource kWrittenNodes{"", "v1", "nodes"}, kActedPods{"", "v1", "pods"};
/// As of the labels of nodes (node_marker.cc).
constexpr WorkQueue::Options kPace{.per_second = 400, .burst = 100, .at_once = 8};

Json TextsOrNull(const std::map<std::string, std::optional<std::string>>& texts) {
  Json json = Json::object();
  for (const auto& [key, value] : texts) json[key] = value ? Json(*value) : Json();
  return json;
}

ApiCall CallOf(const UpgradeAction& action) {
  const std::size_t slash = action.pod.find('/');
  const std::string space = action.pod.substr(0, slash), name = action.pod.substr(slash + 1);
  // Another pod may have the name by now.
  if (action.kind == UpgradeAction::Kind::kDelete)
    return protocol::kube::Delete(kActedPods, space, name, action.uid);
  const Json options = {
      {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", action.uid}}}};
  ApiCall call;
  call.method = "POST";
  call.path = kActedPods.Path(space, name, "eviction");
  call.content_type = "application/json";
  call.body = base::JsonText(Json{{"apiVersion", "policy/v1"},
                                  {"kind", "Eviction"},
                                  {"metadata", {{"name", name}, {"namespace", space}}},
                                  {"deleteOptions", options}});
  // A budget that allows no disruption is answered with 429: it is asked again later.
  call.deadline = 3s;
  return call;
}

}  // namespace

struct NodeWriter::State : std::enable_shared_from_this<State> {
  State(protocol::kube::Api& a, Callbacks c) : api(a), callbacks(std::move(c)) {}

  using Done = std::function<void(Status)>;

  struct Task {
    Json basis;
    NodeWrite write;
    std::size_t next = 0;  // of the actions
    Result result;
  };

  void Begin() {
    queue.emplace(api.executor(), kPace,
                  [this](const std::string& name, const Done& done) { Act(name, done); });
  }

  void Write(const std::string& name, Json basis, NodeWrite write) {
    if (!tasks.try_emplace(name, Task{std::move(basis), std::move(write), 0, {}}).second) return;
    queue->Add(name);
  }

  /// One action after another; that one was refused does not keep the others.
  void Act(const std::string& name, const Done& done) {
    const auto found = tasks.find(name);
    if (found == tasks.end()) return done({});
    Task& task = found->second;
    const auto& actions = task.write.step.actions;
    if (task.next == actions.size()) return Read(name, done);
    const UpgradeAction action = actions[task.next++];
    ++writes;
    api.Do(CallOf(action),
           base::IfAlive(this, [name, action, done](State& self, const Result_& answer) {
             self.Acted(name, action, answer, done);
           }));
  }

  using Result_ = base::Result<ApiResponse>;

  void Acted(const std::string& name, const UpgradeAction& action, const Result_& answer,
             const Done& done) {
    const bool evicts = action.kind == UpgradeAction::Kind::kEvict;
    Task& task = tasks.at(name);
    if (answer.ok()) {
      base::Log(base::kInfo, evicts ? "pod evicted" : "driver pod deleted",
                {{"node", name}, {"pod", action.pod}});
    } else if (const Code code = answer.error().code();
               code != Code::kNotFound && code != Code::kAborted) {  // not: it is gone already
      base::Log(base::kInfo, evicts ? "eviction refused" : "driver pod not deleted",
                {{"node", name}, {"pod", action.pod}, {"why", answer.error().message()}});
      task.result.refused[action.uid] = answer.error().message();
      // The record would say that the pod is being replaced.
      if (!evicts) return End(name, answer.error(), done);
    }
    Act(name, done);
  }

  bool WritesNode(const NodeWrite& write) const {
    return !write.labels.empty() || !write.annotations.empty() || write.step.cordon;
  }

  void Read(const std::string& name, const Done& done) {
    if (!WritesNode(tasks.at(name).write)) return End(name, {}, done);
    api.Do(protocol::kube::Get(kWrittenNodes, "", name),
           base::IfAlive(this, [name, done](State& self, const Result_& answer) {
             const auto node = protocol::kube::Parse(answer);
             if (!node.ok()) return self.End(name, node.error(), done);
             self.Patch(name, *node, done);
           }));
  }

  void Patch(const std::string& name, const Json& node, const Done& done) {
    Task& task = tasks.at(name);
    if (callbacks.reduce(node) != task.basis) {
      task.result.node = node;
      return End(name, Error(Code::kAborted, "it was changed meanwhile"), done);
    }
    Json patch = {{"metadata",
                   {{"uid", TextAt(node, "/metadata/uid")},
                    {"resourceVersion", TextAt(node, "/metadata/resourceVersion")}}}};
    const NodeWrite& write = task.write;
    if (!write.labels.empty()) patch["metadata"]["labels"] = TextsOrNull(write.labels);
    if (!write.annotations.empty())
      patch["metadata"]["annotations"] = TextsOrNull(write.annotations);
    if (write.step.cordon)
      patch["spec"]["unschedulable"] = *write.step.cordon ? Json(true) : Json();
    ++writes;
    api.Do(protocol::kube::Patch(kWrittenNodes, "", name, protocol::kube::kMergePatch, patch,
                                 kManager),
           base::IfAlive(this, [name, done](State& self, const Result_& answer) {
             auto written = protocol::kube::Parse(answer);
             if (!written.ok()) return self.End(name, written.error(), done);
             Task& written_task = self.tasks.at(name);
             written_task.result.node = *std::move(written);
             base::Log(base::kInfo, "driver of node: step",
                       {{"node", name},
                        {"state", std::string(NameOf(written_task.write.step.record.state))},
                        {"why", written_task.write.step.reason}});
             self.callbacks.written(name, written_task.basis, written_task.write.step);
             self.End(name, {}, done);
           }));
  }

  void End(const std::string& name, Status status, const Done& done) {
    auto task = tasks.extract(name);
    Result result = std::move(task.mapped().result);
    // A deleted Node is reported by the watch; another writer was faster.
    const bool gone = !status.ok() && status.error().code() == Code::kNotFound;
    result.status = gone ? Status() : std::move(status);
    done({});
    callbacks.done(name, std::move(result));
  }

  protocol::kube::Api& api;
  const Callbacks callbacks;
  std::map<std::string, Task> tasks;
  std::uint64_t writes = 0;
  std::optional<WorkQueue> queue;
};

NodeWriter::NodeWriter(protocol::kube::Api& api, Callbacks callbacks)
    : state_(std::make_shared<State>(api, std::move(callbacks))) {
  state_->Begin();
}

NodeWriter::~NodeWriter() = default;

void NodeWriter::Write(const std::string& node, Json basis, NodeWrite write) {
  state_->Write(node, std::move(basis), std::move(write));
}

std::map<std::string, NodeStep> NodeWriter::steps() const {
  std::map<std::string, NodeStep> steps;
  for (const auto& [name, task] : state_->tasks) steps.emplace(name, task.write.step);
  return steps;
}

std::uint64_t NodeWriter::writes() const { return state_->writes; }

}  // namespace penstock::cluster
