// Compares two configurations and determines when each difference takes effect in a running agent.
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/config/node_config.h"

namespace penstock::api {

/// Whether a key can change in a running agent, or takes effect at its next start.
enum class Effect { kNow, kRestart };
std::string_view ToString(Effect effect);  ///< "now", "restart"

/// Returns the effect of a key, spelled as in NodeConfig documents: "labels.timestamp". kRestart
/// for an unknown one.
Effect EffectOf(std::string_view key);

struct ConfigChange {
  std::string key;
  std::string from, to;  ///< as in a document; lists in flow style
  Effect effect = Effect::kNow;
  bool operator==(const ConfigChange&) const = default;
};

/// Returns every key that differs, in the document's order.
std::vector<ConfigChange> Changes(const NodeConfig& now, const NodeConfig& next);

/// Returns `next` with the old values of all keys that a running agent cannot change.
NodeConfig KeepUntilRestart(const NodeConfig& running, const NodeConfig& next);

}  // namespace penstock::api
