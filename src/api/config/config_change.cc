// Compares printed documents, so that no key can be missed.
#include "api/config/config_change.h"

#include <algorithm>
#include <utility>

#include "api/config/node_config_keys.h"
#include "base/core/document.h"
#include "base/core/strings.h"
#include "base/yaml.h"

namespace penstock::api {

namespace {

using base::Value;
using Flat = std::vector<std::pair<std::string, std::string>>;

std::string Text(const Value& value) {
  std::vector<std::string> parts;
  if (value.kind == Value::Kind::kList) {
    for (const Value& item : *value.list) parts.push_back(Text(item));
    return "[" + base::Join(parts, ", ") + "]";
  }
  if (value.kind == Value::Kind::kMap) {
    for (const auto& entry : *value.map) parts.push_back(entry.key + ": " + Text(entry.value));
    return "{" + base::Join(parts, ", ") + "}";
  }
  return value.text;
}

bool IsKey(std::string_view path) {
  return std::ranges::find(internal::ConfigKeys(), path, &internal::ConfigKey::path) !=
         internal::ConfigKeys().end();
}

void Flatten(const Value& value, const std::string& prefix, Flat& flat) {
  for (const auto& entry : *value.map) {
    const std::string key = prefix.empty() ? entry.key : prefix + "." + entry.key;
    if (entry.value.kind == Value::Kind::kMap && !IsKey(key)) {
      Flatten(entry.value, key, flat);
    } else {
      flat.emplace_back(key, Text(entry.value));
    }
  }
}

Flat Flatten(const NodeConfig& config) {
  Flat flat;
  const auto document = base::ParseYaml(ToYaml(config), "configuration");
  if (document.ok() && document->map) Flatten(*document, "", flat);
  return flat;
}

}  // namespace

std::string_view ToString(Effect effect) { return effect == Effect::kNow ? "now" : "restart"; }

Effect EffectOf(std::string_view key) {
  for (const internal::ConfigKey& known : internal::ConfigKeys())
    if (known.path == key) return known.effect;
  return Effect::kRestart;
}

std::vector<ConfigChange> Changes(const NodeConfig& now, const NodeConfig& next) {
  const Flat before = Flatten(now), after = Flatten(next);
  std::vector<ConfigChange> changes;
  for (std::size_t i = 0; i < before.size() && i < after.size(); ++i)
    if (before[i].second != after[i].second)
      changes.push_back(
          {before[i].first, before[i].second, after[i].second, EffectOf(before[i].first)});
  return changes;
}

NodeConfig KeepUntilRestart(const NodeConfig& running, const NodeConfig& next) {
  NodeConfig kept = running;
  for (const internal::ConfigKey& key : internal::ConfigKeys())
    if (key.effect == Effect::kNow) key.copy(next, kept);
  return kept;
}

}  // namespace penstock::api
