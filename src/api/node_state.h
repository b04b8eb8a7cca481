// Converts the report to and from the node's NodeState object (penstock.io/v1alpha1,
// cluster-scoped, named like the node), which `kubectl get` shows.
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

/// Returns the whole object, for a server-side apply. It contains counts of holders instead of
/// their processes and commands. Deterministic: equal reports give equal text, and values that
/// change without meaning (a generation, a process id) are left out.
nlohmann::json NodeStateOf(const Report& report);

/// Returns what `penstock status -o json` prints: a NodeState object with what only the node itself
/// knows: `holders`, `agentPid`, `generation`, `cdi`. The keys of ToJson(report), which 0.1.0 has,
/// stand beside `status` until 1.0.
std::string NodeDocument(const Report& report);

/// Returns the report that an object contains, as `kubectl penstock status` shows it. Ignores keys
/// that a newer agent wrote.
base::Result<Report> ReportOf(const nlohmann::json& node_state);

}  // namespace penstock::api
