// Follows the order of config-manager: label, default, then its fallback strategies.
#include "api/config/remote_config.h"

#include <algorithm>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/core/strings.h"

namespace penstock::api {

namespace {

using Json = nlohmann::json;

/// The chosen key and its source; no key: none is available.
struct Choice {
  std::string key;
  std::string by;
  bool empty = false;  ///< the fallback "empty": no configuration, which is no problem
};

std::vector<std::string> KeysOf(const Json& config_map, const char* part) {
  std::vector<std::string> keys;
  if (!config_map.is_object()) return keys;
  const auto found = config_map.find(part);
  if (found == config_map.end() || !found->is_object()) return keys;
  for (const auto& [key, value] : found->items()) keys.push_back(key);
  return keys;
}

bool Has(const std::vector<std::string>& keys, const std::string& key) {
  return std::ranges::find(keys, key) != keys.end();
}

std::optional<Choice> Choose(const api::ConfigMapConfig& where, const std::string& label,
                             const std::vector<std::string>& keys) {
  if (!label.empty()) return Choice{label, "label " + where.node_label};
  if (!where.default_key.empty()) return Choice{where.default_key, "default"};
  for (const std::string& fallback : where.fallbacks) {
    if (fallback == "named" && Has(keys, "default"))
      return Choice{"default", "fall-back \"named\""};
    if (fallback == "single" && keys.size() == 1)
      return Choice{keys.front(), "fall-back \"single\""};
    if (fallback == "empty") return Choice{"", "fall-back \"empty\"", true};
  }
  return std::nullopt;
}

/// "a, b", or of many keys "a, b, ... and 90 more".
std::string Listed(const std::vector<std::string>& keys) {
  constexpr std::size_t kMax = 10;
  std::vector<std::string> shown(
      keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(std::min(keys.size(), kMax)));
  return base::Join(shown, ", ") +
         (keys.size() > kMax ? " and " + std::to_string(keys.size() - kMax) + " more" : "");
}

std::string NoSuchKey(const api::ConfigMapConfig& where, const Choice& choice,
                      const std::vector<std::string>& keys) {
  std::string text = "there is no key " + choice.key + " in " + NameOf(where) + ", which the " +
                     (choice.by == "default" ? "default (cluster.config.default)" : choice.by) +
                     " asks for; it has " + (keys.empty() ? "no key" : Listed(keys));
  if (const auto near = base::Nearest(choice.key, keys)) text += "; did you mean " + *near + "?";
  return text;
}

std::string NothingChosen(const api::ConfigMapConfig& where, const std::vector<std::string>& keys) {
  if (keys.empty()) return NameOf(where) + " has no key: put a configuration under data";
  return NameOf(where) + " has " + std::to_string(keys.size()) + " keys (" + Listed(keys) +
         ") and nothing says which one is for this node: set its label " + where.node_label +
         ", or a default (cluster.config.default)";
}

}  // namespace

std::string NameOf(const api::ConfigMapConfig& where) {
  return "ConfigMap " + where.namespace_name + "/" + where.name;
}

RemoteConfig ChooseConfig(const api::ConfigMapConfig& where, const std::string& label,
                          const Json* config_map) {
  RemoteConfig remote{.origin = NameOf(where)};
  if (config_map == nullptr) {
    remote.problem =
        "there is no " + NameOf(where) + ": create it, or remove its name from cluster.config";
    return remote;
  }
  const std::vector<std::string> keys = KeysOf(*config_map, "data"),
                                 binary = KeysOf(*config_map, "binaryData");
  const auto choice = Choose(where, label, keys);
  if (!choice) {
    remote.problem = NothingChosen(where, keys);
    return remote;
  }
  if (choice->empty) {
    remote.origin += " (" + choice->by + ")";
    return remote;
  }
  remote.origin += ", key " + choice->key + " (" + choice->by + ")";
  if (Has(binary, choice->key)) {
    remote.problem = "key " + choice->key + " of " + NameOf(where) +
                     " is binary data: a configuration is text in UTF-8, under data";
  } else if (!Has(keys, choice->key)) {
    remote.problem = NoSuchKey(where, *choice, keys);
  } else if (const Json& value = config_map->at("data").at(choice->key);
             !value.is_string() || base::Trim(value.get<std::string>()).empty()) {
    remote.problem = "key " + choice->key + " of " + NameOf(where) +
                     " is empty: write a configuration there, or remove the key";
  } else {
    remote.text = value.get<std::string>();
  }
  return remote;
}

}  // namespace penstock::api
