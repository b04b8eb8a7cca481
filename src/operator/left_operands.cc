#include "operator/left_operands.h"

#include <algorithm>
#include <utility>

#include "api/compat/policy_kinds.h"
#include "base/core/strings.h"
#include "operator/adoption.h"
#include "operator/fleet_state.h"
#include "operator/names.h"
#include "protocol/kube/informer.h"

namespace penstock::cluster {

using protocol::kube::Informer;

namespace {

/// Pods of these DaemonSets come and go: only another owner is a change.
Json NameAndOwners(const Json& daemon_set) {
  return {{"metadata",
           {{"name", TextAt(daemon_set, "/metadata/name")},
            {"namespace", TextAt(daemon_set, "/metadata/namespace")},
            {"ownerReferences", ListAt(daemon_set, "/metadata/ownerReferences")}}}};
}

}  // namespace

OperandsLeft DescribeLeft(const std::vector<std::string>& names,
                          const std::string& namespace_name) {
  if (names.empty()) return {};
  const std::size_t named = std::min(names.size(), kMostNamed);
  const std::vector<std::string> some(names.begin(),
                                      names.begin() + static_cast<std::ptrdiff_t>(named));
  std::string text =
      "another operator has left DaemonSets, which do the agents' work beside them; `kubectl "
      "delete daemonset -n " +
      namespace_name + " " + base::Join(some, " ") + "` removes them";
  if (names.size() > named)
    text += " (" + std::to_string(named) + " of " + std::to_string(names.size()) + ")";
  if (std::ranges::any_of(names, api::compat::InstallsDrivers))
    text += "; pods that have installed a driver unload it as they end, where nothing uses it";
  return {std::move(text), !std::ranges::all_of(names, api::compat::OnlyReadsDevices)};
}

struct LeftOperands::State {
  State(protocol::kube::Api& api, std::string n, std::function<void()> c)
      : space(std::move(n)), changed(std::move(c)), informer(api, Options(), Handlers()) {}

  Informer::Options Options() const {
    Informer::Options options;
    options.resource = {"apps", "v1", "daemonsets"};
    options.namespace_name = space;
    options.metadata_only = true;
    options.label_selector = kSelectorOfOthers;
    options.reduce = NameAndOwners;
    return options;
  }

  Informer::Handlers Handlers() {
    return {.changed =
                [this](const Json& set) {
                  names.insert(TextAt(set, "/metadata/name"));
                  changed();
                },
            .removed =
                [this](const auto&, const auto& name) {
                  names.erase(name);
                  changed();
                },
            .synced = changed,
            .problem = {}};
  }

  const std::string space;
  const std::function<void()> changed;
  std::set<std::string> names;
  Informer informer;
};

LeftOperands::LeftOperands(protocol::kube::Api& api, std::string namespace_name,
                           std::function<void()> changed)
    : state_(std::make_shared<State>(api, std::move(namespace_name), std::move(changed))) {}

LeftOperands::~LeftOperands() = default;

void LeftOperands::Start() { state_->informer.Start(); }
bool LeftOperands::synced() const { return state_->informer.synced(); }

OperandsLeft LeftOperands::Find(const std::set<std::string>& policies) const {
  std::vector<std::string> left;
  for (const std::string& name : state_->names)
    if (const auto set = state_->informer.Find(state_->space, name);
        set != nullptr && WhoseIs(*set, policies) == Belongs::kAdoptable)
      left.push_back(name);
  return DescribeLeft(left, state_->space);
}

}  // namespace penstock::cluster
