#include "app/agent/service_plan.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "protocol/engine/engine_install.h"

namespace penstock::app {

using protocol::systemd::ServiceUnit;

namespace {

constexpr std::size_t kMostStoppedWith = 64;
constexpr std::array<std::string_view, 4> kKindsStartedAgain = {".service", ".socket", ".timer",
                                                                ".path"};
/// Kubelets, also those that are a part of another program, and what a machine is managed by. The
/// engines are in protocol::engine::Recipes.
constexpr std::array<std::string_view, 13> kNeeded = {"kubelet.service",
                                                      "k3s-agent.service",
                                                      "rke2-server.service",
                                                      "k0scontroller.service",
                                                      "snap.microk8s.daemon-kubelite.service",
                                                      "microshift.service",
                                                      "cri-docker.service",
                                                      "dbus.service",
                                                      "dbus-broker.service",
                                                      "ssh.service",
                                                      "sshd.service",
                                                      "auditd.service",
                                                      "NetworkManager.service"};

/// Whether one of the groups, as /proc shows them, is that of the unit or below it. In a container,
/// those outside of its own begin with "/..".
bool IsWithin(const std::string& unit, const std::set<std::string>& groups) {
  constexpr std::string_view kUp = "/..";
  return !unit.empty() && std::ranges::any_of(groups, [&](std::string_view group) {
    while (group.starts_with(kUp)) group.remove_prefix(kUp.size());
    return group == unit || (group.starts_with(unit) && group[unit.size()] == '/');
  });
}

const ServiceUnit* FindUnit(const std::vector<ServiceUnit>& units, const std::string& name) {
  const auto found = std::ranges::find_if(units, [&](const ServiceUnit& unit) {
    return unit.id == name || std::ranges::find(unit.names, name) != unit.names.end();
  });
  return found == units.end() ? nullptr : &*found;
}

bool IsNeeded(const std::string& name) {
  return name.starts_with("systemd-") || std::ranges::find(kNeeded, name) != kNeeded.end() ||
         std::ranges::any_of(protocol::engine::Recipes(),
                             [&](const auto& engine) { return engine.unit == name; });
}

/// Why a unit is never stopped; empty: it can be.
std::string WhyKept(const ServiceUnit& unit, const std::set<std::string>& own) {
  if (IsNeeded(unit.id) || std::ranges::any_of(unit.names, IsNeeded)) return "the node needs it";
  if (IsWithin(unit.control_group, own)) return "this agent runs in it";
  const auto has_kind = [&](std::string_view kind) { return unit.id.ends_with(kind); };
  if (std::ranges::none_of(kKindsStartedAgain, has_kind))
    return "it is no service, and would not be as before after a start";
  return "";
}

/// The active units that stop with a service, those that stop first in front; `kept` gets the
/// reason if one of them must not.
class StoppedWith {
 public:
  StoppedWith(const ServiceFacts& facts, ServicePlan& plan) : facts_(facts), plan_(plan) {}

  void Add(const ServiceUnit& unit) {
    if (!seen_.insert(unit.id).second) return;
    if (seen_.size() > kMostStoppedWith) {
      kept_ = "more than " + std::to_string(kMostStoppedWith) + " units stop with it";
      return;
    }
    if (const std::string why = WhyKept(unit, facts_.own); !why.empty() && kept_.empty())
      kept_ = seen_.size() == 1 ? why : unit.id + " would stop with it, and " + why;
    for (const std::string& name : unit.stopped_with) {
      const ServiceUnit* other = FindUnit(facts_.units, name);
      if (other == nullptr && !facts_.asked.contains(name)) plan_.unknown.insert(name);
      if (other != nullptr && other->active) Add(*other);
    }
    units_.push_back(unit.id);
  }

  const std::vector<std::string>& units() const { return units_; }
  const std::string& kept() const { return kept_; }

 private:
  const ServiceFacts& facts_;
  ServicePlan& plan_;
  std::set<std::string> seen_;
  std::vector<std::string> units_;
  std::string kept_;
};

}  // namespace

ServicePlan PlanServices(const ServiceFacts& facts) {
  ServicePlan plan;
  for (const std::string& name : facts.listed) {
    const ServiceUnit* unit = FindUnit(facts.units, name);
    if (unit == nullptr && !facts.asked.contains(name)) plan.unknown.insert(name);
    if (unit == nullptr || !unit->exists || !unit->active ||
        !IsWithin(unit->control_group, facts.holders) ||
        std::ranges::find(plan.stop, unit->id) != plan.stop.end())
      continue;
    StoppedWith with(facts, plan);
    with.Add(*unit);
    if (!with.kept().empty()) {
      plan.kept[unit->id] = with.kept();
      continue;
    }
    plan.stop.push_back(unit->id);
    for (const std::string& one : with.units())
      if (std::ranges::find(plan.stopped, one) == plan.stopped.end()) plan.stopped.push_back(one);
  }
  if (!plan.unknown.empty()) return {.unknown = std::move(plan.unknown)};
  return plan;
}

}  // namespace penstock::app
