// In Prometheus, a name is [a-zA-Z_][a-zA-Z0-9_]*, and names that begin with "__" are reserved.
#include "node/metrics/label_names.h"

#include <algorithm>
#include <cctype>
#include <set>

namespace penstock::node::metrics {
namespace {

bool IsLetterOrDigit(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 && static_cast<unsigned char>(c) < 0x80;
}

std::string Sanitised(std::string_view key) {
  std::string name(key);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !IsLetterOrDigit(c); }, '_');
  return name;
}

/// "camelCase" becomes "camel_case".
std::string SnakeCase(std::string_view text) {
  std::string snake;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool upper = text[i] >= 'A' && text[i] <= 'Z';
    if (upper && i > 0 && IsLetterOrDigit(text[i - 1]) &&
        !(text[i - 1] >= 'A' && text[i - 1] <= 'Z'))
      snake += '_';
    snake += upper ? static_cast<char>(text[i] - 'A' + 'a') : text[i];
  }
  return snake;
}

bool IsValid(std::string_view name) {
  return !name.empty() && !name.starts_with("__") &&
         std::isdigit(static_cast<unsigned char>(name.front())) == 0;
}

}  // namespace

device::ExporterLabels KubeLabels(const std::map<std::string, std::string>& labels) {
  device::ExporterLabels named;
  std::map<std::string, int> counts;
  for (const auto& [key, value] : labels) {
    named.emplace_back("label_" + SnakeCase(Sanitised(key)), value);
    ++counts[named.back().first];
  }
  std::map<std::string, int> seen;
  std::set<std::string> taken;
  for (auto& [name, value] : named) {
    if (counts[name] > 1) name += "_conflict" + std::to_string(++seen[name]);
    while (!taken.insert(name).second) name += '_';  // a key may itself end in such a suffix
  }
  return named;
}

device::ExporterLabels PlainLabels(const std::map<std::string, std::string>& labels,
                                   const device::ExporterLabels& others) {
  std::set<std::string, std::less<>> taken;
  for (const auto& [name, value] : others) taken.insert(name);
  device::ExporterLabels named = KubeLabels(labels);
  std::size_t at = 0;
  for (const auto& [key, value] : labels) {
    std::string plain = Sanitised(key);
    std::string& name = named[at++].first;
    if (IsValid(plain) && !taken.contains(plain)) name = std::move(plain);
    while (!taken.insert(name).second) name += '_';
  }
  return named;
}

}  // namespace penstock::node::metrics
