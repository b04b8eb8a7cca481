// Converts parts of documents into JSON, and checks the forms of single values.
#include "api/cluster/kube_json.h"

#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "base/core/json_text.h"
#include "base/core/strings.h"

namespace penstock::api::internal {

using base::Value;

KubeJson KubeJsonOf(const Value& value) {
  return {base::JsonText(base::JsonOf<nlohmann::ordered_json>(value))};
}

bool IsNumberOrPercent(std::string_view text) {
  const bool percent = text.ends_with('%');
  if (percent) text.remove_suffix(1);
  const auto number = base::ParseUint(text);
  return number && *number <= (percent ? 100u : 1'000'000u);
}

bool IsPrometheusDuration(std::string_view text) {
  static constexpr std::array<std::string_view, 7> kUnits = {"y", "w", "d", "h", "m", "s", "ms"};
  if (text.empty() || text == "0") return !text.empty();
  auto after = kUnits.begin();  // of the last unit: they descend
  while (!text.empty()) {
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::size_t end = std::min(text.find_first_of("0123456789", digits), text.size());
    const auto unit = std::find(after, kUnits.end(), text.substr(digits, end - digits));
    if (digits == 0 || unit == kUnits.end()) return false;
    after = unit + 1;
    text.remove_prefix(end);
  }
  return true;
}

}  // namespace penstock::api::internal
