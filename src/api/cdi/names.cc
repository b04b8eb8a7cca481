// Parses names of kinds and devices (pkg/parser/parser.go).
#include <algorithm>
#include <cctype>

#include "api/cdi/spec.h"

namespace penstock::api::cdi {

namespace {

bool IsLetter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }
bool IsLetterOrDigit(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// Whether all characters are letters, digits or one of `others`.
bool HasOnly(std::string_view text, std::string_view others) {
  return std::ranges::all_of(text, [others](char c) {
    return IsLetterOrDigit(c) || others.find(c) != std::string_view::npos;
  });
}

/// Explains why the vendor's or the class's part of a kind is invalid.
std::string WhyNoPart(std::string_view name, std::string_view part) {
  const std::string the = "its " + std::string(part) + " ";
  if (name.empty()) return the + "is empty";
  if (name.size() == 1)
    return the + "has only one character, with which engines fail";  // the reader slices [1:0],
                                                                     // which panics in Go
  if (!IsLetter(name.front())) return the + "must begin with a letter";
  if (!IsLetterOrDigit(name.back())) return the + "must end with a letter or digit";
  if (!HasOnly(name, "_-.")) return the + "may contain only letters, digits, '_', '-' and '.'";
  return "";
}

}  // namespace

std::string WhyNoKind(std::string_view kind) {
  const auto slash = kind.find('/');
  if (slash == std::string_view::npos) return "must be vendor/class";
  std::string why = WhyNoPart(kind.substr(0, slash), "vendor");
  return why.empty() ? WhyNoPart(kind.substr(slash + 1), "class") : why;
}

std::string WhyNoDeviceName(std::string_view name) {
  if (name.empty()) return "is empty";
  if (!IsLetterOrDigit(name.front())) return "must begin with a letter or digit";
  if (!IsLetterOrDigit(name.back())) return "must end with a letter or digit";
  if (!HasOnly(name, "_-.:")) return "may contain only letters, digits, '_', '-', '.' and ':'";
  return "";
}

std::string DeviceNameOf(std::string_view id) {
  std::string name(id);
  std::ranges::replace(name, '/', '_');
  return name;
}

std::optional<QualifiedName> ParseName(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos) return std::nullopt;
  QualifiedName name{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
  if (!WhyNoKind(name.kind).empty() || !WhyNoDeviceName(name.device).empty()) return std::nullopt;
  return name;
}

std::string FileName(std::string_view kind) {
  std::string name(kind);
  std::replace(name.begin(), name.end(), '/', '-');
  return name;
}

}  // namespace penstock::api::cdi
