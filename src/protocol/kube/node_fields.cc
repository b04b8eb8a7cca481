#include "protocol/kube/node_fields.h"

#include <string_view>

#include <nlohmann/json.hpp>

namespace penstock::protocol::kube {
namespace {

/// Not one of those that the API server's plugin NodeRestriction keeps a node's credentials from.
bool MayBeANodes(std::string_view key) {
  const std::string_view domain = key.substr(0, key.find('/'));
  return domain.size() == key.size() || domain.ends_with("feature.node.kubernetes.io") ||
         !(domain.ends_with("kubernetes.io") || domain.ends_with("k8s.io"));
}

bool AreLabelsOfNodes(const Json& fields) {
  if (!fields.is_object() || fields.size() != 1 || !fields.contains("f:metadata")) return false;
  for (const auto& [part, keys] : fields.at("f:metadata").items()) {
    if (part == ".") continue;
    if ((part != "f:labels" && part != "f:annotations") || !keys.is_object()) return false;
    for (const auto& [key, none] : keys.items())
      if (key != "." && !(key.starts_with("f:") && MayBeANodes(std::string_view(key).substr(2))))
        return false;
  }
  return true;
}

}  // namespace

bool MayBeTakenBack(const Json& entry) {
  if (!entry.is_object()) return false;
  const auto has = [&entry](const char* key, std::string_view text) {
    const auto found = entry.find(key);
    return found == entry.end() ? text.empty() : *found == text;
  };
  const auto fields = entry.find("fieldsV1");
  return has("operation", "Apply") && has("subresource", "") && fields != entry.end() &&
         AreLabelsOfNodes(*fields);
}

}  // namespace penstock::protocol::kube
