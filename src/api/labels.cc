#include "api/labels.h"

#include <algorithm>

namespace penstock::api {
namespace {

constexpr std::size_t kMaxName = 63, kMaxPrefix = 253;

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsAlphanumeric(char c) { return IsLower(c) || IsDigit(c) || (c >= 'A' && c <= 'Z'); }
bool IsNameCharacter(char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; }

bool IsName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxName && IsAlphanumeric(name.front()) &&
         IsAlphanumeric(name.back()) && std::ranges::all_of(name, IsNameCharacter);
}

/// RFC 1123 subdomain: labels of lower-case letters, digits and "-", joined by dots.
bool IsSubdomain(std::string_view text) {
  if (text.empty() || text.size() > kMaxPrefix) return false;
  char before = '.';
  for (const char c : text) {
    const bool edge = c == '.' || c == '-';
    if (!edge && !IsLower(c) && !IsDigit(c)) return false;
    // A DNS label is not empty and does not begin or end with "-".
    if ((before == '.' && edge) || (before == '-' && c == '.')) return false;
    before = c;
  }
  return before != '.' && before != '-';
}

}  // namespace

bool IsLabelKey(std::string_view key) {
  const auto slash = key.find('/');
  if (slash == std::string_view::npos) return IsName(key);
  return IsSubdomain(key.substr(0, slash)) && IsName(key.substr(slash + 1));
}

bool IsLabelValue(std::string_view value) { return value.empty() || IsName(value); }

std::optional<std::string> FitLabelValue(std::string_view value) {
  if (IsLabelValue(value)) return std::string(value);
  if (!std::ranges::all_of(value, IsNameCharacter)) return std::nullopt;
  while (!value.empty() && !IsAlphanumeric(value.front())) value.remove_prefix(1);
  value = value.substr(0, kMaxName);
  while (!value.empty() && !IsAlphanumeric(value.back())) value.remove_suffix(1);
  return value.empty() ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace penstock::api
