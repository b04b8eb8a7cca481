// The node's own object, NodeState of penstock.io/v1alpha1 (cluster-scoped, named like the node): the report for `kubectl get`.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "api/report.h"
#include "base/core/result.h"

namespace penstock::api {

inline constexpr std::string_view kNodeStateGroup = "penstock.io";
inline constexpr std::string_view kNodeStateVersion = "v1alpha1";
inline constexpr std::string_view kNodeStatePlural = "nodestates";

/// The whole object, for a server-side apply. Counts of holders instead of their processes and commands. Deterministic: equal reports make
/// equal text, and what changes without meaning (a generation, a process id) is not in it.
nlohmann::json NodeStateOf(const Report& report);

/// Back from an object: what `kubectl penstock status` shows. Keys that a newer agent wrote are passed over.
base::Result<Report> ReportOf(const nlohmann::json& node_state);

}  // namespace penstock::api
