#include "node/driver/preparation.h"

#include <algorithm>
#include <deque>
#include <set>

namespace penstock::node::driver {
namespace {

bool IsListed(const device::KernelDriver& driver, const std::string& module) {
  return std::ranges::find(driver.modules, module) != driver.modules.end();
}

/// Whether it is the vendor's; others that use it belong to other programs.
bool IsOfDriver(const device::KernelDriver& driver, const std::string& module) {
  return module == driver.module || module.starts_with(driver.module + "_") ||
         IsListed(driver, module);
}

/// Collects modules so that each comes before those that it uses.
class UnloadOrder {
 public:
  UnloadOrder(const device::KernelDriver& driver, const Modules& modules)
      : driver_(driver), modules_(modules) {}

  UnloadPlan Take() {
    for (const std::string& name : driver_.modules) Add(name);
    Add(driver_.module);
    return std::move(plan_);
  }

 private:
  void Add(const std::string& name) {
    const auto module = modules_.find(name);
    if (module == modules_.end() || !seen_.insert(name).second) return;
    if (!IsOfDriver(driver_, name)) {
      plan_.foreign.push_back(name);
      return;
    }
    for (const std::string& user : module->second.users) Add(user);
    plan_.order.push_back(name);
    if (module->second.references > Expected(module->second)) plan_.in_use.push_back(name);
  }

  /// The references that end when the driver's other modules are unloaded. A module may have looked
  /// up the driver's functions by name, which the kernel counts without listing it as a user.
  int Expected(const os::KernelModule& module) const {
    auto expected = static_cast<int>(module.users.size());
    if (module.name != driver_.module) return expected;
    for (const std::string& name : driver_.modules)
      if (modules_.contains(name) && std::ranges::find(module.users, name) == module.users.end() &&
          !UsesAnother(name) && !IsUsedByDriver(name))
        ++expected;
    return expected;
  }

  /// Whether it reaches the driver through another module.
  bool UsesAnother(const std::string& name) const {
    return std::ranges::any_of(driver_.modules, [&](const std::string& other) {
      const auto module = modules_.find(other);
      return module != modules_.end() &&
             std::ranges::find(module->second.users, name) != module->second.users.end();
    });
  }

  /// Whether the driver uses it, itself or through another module: then it has not looked up the
  /// driver's functions.
  bool IsUsedByDriver(const std::string& name) const {
    std::set<std::string> found{name};
    std::deque<std::string> next{name};
    for (; !next.empty(); next.pop_front()) {
      if (next.front() == driver_.module) return true;
      const auto module = modules_.find(next.front());
      if (module == modules_.end()) continue;
      for (const std::string& user : module->second.users)
        if (found.insert(user).second) next.push_back(user);
    }
    return false;
  }

  const device::KernelDriver& driver_;
  const Modules& modules_;
  std::set<std::string> seen_;
  UnloadPlan plan_;
};

}  // namespace

std::string_view ToString(PreparationKind kind) {
  switch (kind) {
    case PreparationKind::kKeep: return "keep";
    case PreparationKind::kClean: return "clean";
    case PreparationKind::kReplace: return "replace";
    case PreparationKind::kRefuse: return "refuse";
  }
  return "";
}

UnloadPlan PlanUnload(const device::KernelDriver& driver, const Modules& modules) {
  return UnloadOrder(driver, modules).Take();
}

Preparation Prepare(const device::KernelDriver& driver, const DriverState& state,
                    const DriverWanted& wanted) {
  Preparation made;
  const bool loaded = state.modules.contains(driver.module);
  const bool same = !wanted.digest.empty() && state.digest == wanted.digest;
  if (loaded && same && !wanted.reinstall) {
    made.kind = PreparationKind::kKeep;
    made.reason = "the wanted driver is loaded";
    // The next container mounts its own files, which would come to lie within these.
    made.unmount = state.root_mounted && state.container_ended;
    return made;
  }
  if (!state.host_library.empty() && !state.root_mounted) {
    made.kind = PreparationKind::kRefuse;
    made.reason = "the node has a driver of its own (" + state.host_library + ")";
    return made;
  }
  made.unmount = state.root_mounted;
  for (const std::string& rival : driver.rivals)
    if (state.modules.contains(rival)) made.rivals.push_back(rival);
  const UnloadPlan unload = PlanUnload(driver, state.modules);
  if (unload.order.empty()) {
    made.reason = "no driver is loaded";
    return made;
  }
  made.kind = PreparationKind::kReplace;
  if (!loaded)
    made.reason = "the driver was unloaded in part";
  else if (same)
    made.reason = "the wanted driver is loaded, and is to be installed again";
  else if (state.digest.empty())
    made.reason = "a driver is loaded of which no driver container said what it is";
  else
    made.reason = "another driver, or one with other settings, is loaded";
  return made;
}

}  // namespace penstock::node::driver
