#include "operator/namespace_labels.h"

#include <utility>

#include "base/lifetime.h"
#include "operator/json_values.h"
#include "operator/names.h"
#include "operator/node_marks.h"

namespace penstock::cluster {

using protocol::kube::ApiResponse;

namespace {

const protocol::kube::Resource kNamespaces{"", "v1", "namespaces"};

}  // namespace

struct NamespaceLabels::State : std::enable_shared_from_this<State> {
  State(protocol::kube::Api& a, std::string n) : api(a), name(std::move(n)) {}

  void Reconcile(const Texts& labels, std::function<void(Status)> end) {
    wanted = labels;
    done = std::move(end);
    agrees = false;
    api.Do(protocol::kube::Get(kNamespaces, "", name), base::IfAlive(this, &State::OnRead));
  }

  void OnRead(const Result<ApiResponse>& answer) {
    const auto found = protocol::kube::Parse(answer);
    if (!found.ok()) return End(found.error());
    const NodeMarksPlan plan{.labels = wanted};
    const Texts there = TextsAt(*found, "/metadata/labels");
    bool same = !AppliedMore(*found, plan);
    for (const auto& [key, value] : wanted) {
      const auto label = there.find(key);
      same &= label != there.end() && label->second == value;
    }
    if (same) return End({});
    Json object = MarksObject(*found, plan, TextAt(*found, "/metadata/resourceVersion"));
    object["kind"] = "Namespace";
    api.Do(protocol::kube::Apply(kNamespaces, "", object, kManager),
           base::IfAlive(this, [](State& self, const Result<ApiResponse>& written) {
             self.End(written.ok() ? Status() : Status(written.error()));
           }));
  }

  void End(const Status& status) {
    agrees = status.ok();
    std::exchange(done, nullptr)(status);
  }

  protocol::kube::Api& api;
  const std::string name;
  Texts wanted;
  bool agrees = false;
  std::function<void(Status)> done;
};

NamespaceLabels::NamespaceLabels(protocol::kube::Api& api, std::string namespace_name)
    : state_(std::make_shared<State>(api, std::move(namespace_name))) {}

NamespaceLabels::~NamespaceLabels() = default;

void NamespaceLabels::Reconcile(const std::map<std::string, std::string>& labels,
                                std::function<void(Status)> done) {
  state_->Reconcile(labels, std::move(done));
}

bool NamespaceLabels::agrees() const { return state_->agrees; }

}  // namespace penstock::cluster
