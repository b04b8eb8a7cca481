// Converts parts of documents into JSON, and checks the forms of single values.
#include "api/cluster/kube_json.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/core/json_text.h"
#include "base/core/strings.h"

namespace penstock::api::internal {

using base::Value;

nlohmann::ordered_json JsonOf(const Value& value) {
  using Json = nlohmann::ordered_json;
  switch (value.kind) {
    case Value::Kind::kNull: return nullptr;
    case Value::Kind::kBool: return value.boolean;
    case Value::Kind::kInt: return value.integer;
    case Value::Kind::kFloat: return value.number;
    case Value::Kind::kString: return value.text;
    case Value::Kind::kList: {
      Json list = Json::array();
      for (const Value& item : *value.list) list.push_back(JsonOf(item));
      return list;
    }
    case Value::Kind::kMap: {
      Json map = Json::object();
      for (const Value::Entry& entry : *value.map) map[entry.key] = JsonOf(entry.value);
      return map;
    }
  }
  return nullptr;
}

KubeJson KubeJsonOf(const Value& value) { return {base::JsonText(JsonOf(value))}; }

bool IsNumberOrPercent(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  const auto number = base::ParseUint(text);
  return number && *number <= (percent ? 100u : 1'000'000u);
}

bool IsPrometheusDuration(std::string_view text) {
  static constexpr std::array<std::string_view, 7> kUnits = {"y", "w", "d", "h", "m", "s", "ms"};
  std::size_t next = 0;
  bool some = false;
  while (!text.empty()) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::size_t end = std::min(text.find_first_of("0123456789", digits), text.size());
    const auto number = base::ParseUint(text.substr(0, digits));
    const auto unit =
        std::find(kUnits.begin() + next, kUnits.end(), text.substr(digits, end - digits));
    if (!number || unit == kUnits.end()) return false;
    some = some || *number > 0;
    next = static_cast<std::size_t>(unit - kUnits.begin()) + 1;
    text.remove_prefix(end);
  }
  return some;
}

}  // namespace penstock::api::internal
