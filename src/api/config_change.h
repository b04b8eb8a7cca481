// What differs between two configurations, and when each difference takes effect in a running agent. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/node_config.h"

namespace penstock::api {

/// Whether a key can change under a running agent, or counts from its next start.
enum class Effect { kNow, kRestart };
std::string_view ToString(Effect effect);  ///< "now", "restart"

/// Of a key as NodeConfig documents have it, "labels.timestamp". Now: doors.assign, health, resources,
/// sharing.rules, sharing.policy, labels, devicePlugin, containers but for its engineSocket, what CDI specifications are made with,
/// paths.host*, cluster.config, telemetry, usage but for its dir, http.webConfigFile. The others (which doors are open, the paths that are
/// open, listen, the node's name, the connection to the cluster) with the next start.
Effect EffectOf(std::string_view key);

struct Change {
  std::string key;
  std::string from, to;  ///< as a document has them; lists in flow style
  Effect effect = Effect::kNow;
  bool operator==(const Change&) const = default;
};

/// Every key that differs, in the document's order.
std::vector<Change> Changes(const NodeConfig& now, const NodeConfig& next);

/// `next` with the old values of all keys that a running agent cannot change.
NodeConfig KeepUntilRestart(const NodeConfig& running, NodeConfig next);

}  // namespace penstock::api
