// Computes the patches of nodes/status: the kubelet's numbers, of which it invents none, and the
// condition that says whether the accelerators are ready. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "adapter/kubelet/allocatable_confirmation.h"
#include "api/report.h"

namespace penstock::adapter::cluster {

/// status.capacity and status.allocatable of a Node: resource → quantity as text.
struct NodeNumbers {
  std::map<std::string, std::string> capacity, allocatable;
};

/// The condition of a Node by which users select nodes whose accelerators are ready.
inline constexpr std::string_view kReadyCondition = "penstock.io/AcceleratorsReady";

/// Field manager of that condition.
inline constexpr std::string_view kConditionManager = "penstock-condition";

/// That condition, as the Node shows it. Times as in the object.
struct ObservedCondition {
  std::string status, reason, message, since;
  bool operator==(const ObservedCondition&) const = default;
};

/// Returns {"status": {"capacity": {...}, "allocatable": {...}}} with the numbers that differ, for
/// a strategic merge patch; nullopt if the Node shows all of them.
std::optional<nlohmann::json> StatusPatch(const NodeNumbers& shown,
                                          const adapter::kubelet::KubeletAmounts& amounts);

/// The patch that gives the Node the condition, for a strategic merge patch, which leaves the
/// others alone; nullopt if the Node shows it. `shown`: as the Node has it, if it does. `now`: RFC
/// 3339.
std::optional<nlohmann::json> ConditionPatch(const std::optional<ObservedCondition>& shown,
                                             const api::ConditionReport& wanted,
                                             const std::string& now);

}  // namespace penstock::adapter::cluster
