#include "api/compat/policy_state.h"

#include <nlohmann/json.hpp>

namespace penstock::api::compat {

namespace {

using nlohmann::json;

std::string PolicyTextAt(const json& value, const char* pointer) {
  const json::json_pointer at(pointer);
  return value.contains(at) && value[at].is_string() ? value[at].get<std::string>() : "";
}

}  // namespace

std::string StateOfPolicy(const json& object) {
  if (std::string state = PolicyTextAt(object, "/status/state"); !state.empty()) return state;
  const json::json_pointer conditions("/status/conditions");
  if (!object.contains(conditions)) return "";
  for (const json& condition : object[conditions]) {
    if (PolicyTextAt(condition, "/type") != "Ready") continue;
    const std::string status = PolicyTextAt(condition, "/status");
    if (status.empty()) return "";
    if (PolicyTextAt(condition, "/reason") == kIgnored) return "ignored";
    return status == "True" ? "ready" : "notReady";
  }
  return "";
}

}  // namespace penstock::api::compat
