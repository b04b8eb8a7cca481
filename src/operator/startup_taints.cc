// A watch of whole Nodes would stream all their heartbeats for taints that are removed once in a
// node's life: a node is read when its devices can be used.
#include "operator/startup_taints.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/lifetime.h"
#include "base/log.h"
#include "operator/json_values.h"
#include "operator/names.h"
#include "protocol/kube/work_queue.h"

namespace penstock::cluster {

using protocol::kube::ApiResponse;
using protocol::kube::WorkQueue;

namespace {

const protocol::kube::Resource kTaintedNodes{"", "v1", "nodes"};
/// Below the pace of the labels, which nodes need first.
constexpr WorkQueue::Options kTaintPace{.per_second = 50, .burst = 50, .at_once = 4};

}  // namespace

struct StartupTaints::State : std::enable_shared_from_this<State> {
  State(protocol::kube::Api& a, std::function<void()> c) : api(a), changed(std::move(c)) {}

  using Done = std::function<void(Status)>;

  void Begin() {
    queue.emplace(api.executor(), kTaintPace,
                  [this](const std::string& name, const Done& done) { Look(name, done); });
  }

  void Want(std::vector<std::string> now) {
    if (keys == now) return;
    keys = std::move(now);
    problems.clear();
    for (const std::string& name : ready) queue->Add(name);
  }

  void SetReady(std::set<std::string> now) {
    const std::set<std::string> before = std::exchange(ready, std::move(now));
    std::erase_if(problems, [this](const auto& one) { return !ready.contains(one.first); });
    for (const std::string& name : ready)
      if (!before.contains(name)) queue->Add(name);
  }

  void Look(const std::string& name, const Done& done) {
    if (keys.empty() || !ready.contains(name)) return done({});
    api.Do(protocol::kube::Get(kTaintedNodes, "", name),
           base::IfAlive(this, [name, done](State& self, const Result<ApiResponse>& answer) {
             const auto node = protocol::kube::Parse(answer);
             if (!node.ok()) return self.Ended(name, node.error(), done);
             self.Remove(name, *node, done);
           }));
  }

  void Remove(const std::string& name, const Json& node, const Done& done) {
    const Json* taints = Find(node, "/spec/taints");
    if (taints == nullptr || !taints->is_array()) return Ended(name, {}, done);
    Json rest = Json::array();
    for (const Json& taint : *taints)
      if (std::ranges::find(keys, TextAt(taint, "/key")) == keys.end()) rest.push_back(taint);
    if (rest.size() == taints->size()) return Ended(name, {}, done);
    // The list is written whole: not over what another controller adds meanwhile.
    const Json patch = {{"metadata",
                         {{"uid", TextAt(node, "/metadata/uid")},
                          {"resourceVersion", TextAt(node, "/metadata/resourceVersion")}}},
                        {"spec", {{"taints", rest.empty() ? Json() : rest}}}};
    ++writes;
    api.Do(protocol::kube::Patch(kTaintedNodes, "", name, protocol::kube::kMergePatch, patch,
                                 kManager),
           base::IfAlive(this, [name, done](State& self, const Result<ApiResponse>& answer) {
             if (!answer.ok()) return self.Ended(name, answer.error(), done);
             base::Log(base::kInfo, "start-up taint removed", {{"node", name}});
             self.Ended(name, {}, done);
           }));
  }

  void Ended(const std::string& name, Status status, const Done& done) {
    if (!status.ok()) {
      const Code code = status.error().code();
      if (code == Code::kNotFound) return done({});                // the node is gone
      if (code == Code::kAborted) return done(std::move(status));  // another writer was faster
    }
    const std::string text = status.ok() ? "" : status.error().message();
    const auto known = problems.find(name);
    if (text != (known == problems.end() ? "" : known->second)) {
      if (text.empty()) {
        problems.erase(name);
      } else {
        problems[name] = text;
        base::Log(base::kWarn, "start-up taint not removed", {{"node", name}, {"why", text}});
      }
      changed();
    }
    done(std::move(status));
  }

  protocol::kube::Api& api;
  const std::function<void()> changed;
  std::vector<std::string> keys;
  std::set<std::string> ready;
  std::map<std::string, std::string> problems;
  std::uint64_t writes = 0;
  std::optional<WorkQueue> queue;
};

StartupTaints::StartupTaints(protocol::kube::Api& api, std::function<void()> changed)
    : state_(std::make_shared<State>(api, std::move(changed))) {
  state_->Begin();
}

StartupTaints::~StartupTaints() = default;

void StartupTaints::Want(std::vector<std::string> keys) { state_->Want(std::move(keys)); }
void StartupTaints::SetReady(std::set<std::string> nodes) { state_->SetReady(std::move(nodes)); }
std::uint64_t StartupTaints::writes() const { return state_->writes; }

std::vector<std::string> StartupTaints::problems() const {
  std::set<std::string> texts;
  for (const auto& [name, text] : state_->problems) texts.insert(text);
  return {texts.begin(), texts.end()};
}

}  // namespace penstock::cluster
