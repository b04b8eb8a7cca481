// Quotes text for JSON and TOML: TOML has all of JSON's escapes and also requires one for DEL.
#include "protocol/engine/text/spelling.h"

#include <algorithm>

namespace penstock::protocol::engine {
namespace {

constexpr char kHex[] = "0123456789abcdef";

std::string Quote(std::string_view text, bool toml) {
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      (quoted += '\\') += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else if (byte < 0x20 || (toml && byte == 0x7f)) {
      quoted += "\\u00";
      (quoted += kHex[byte >> 4]) += kHex[byte & 15];
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

bool IsBare(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
         c == '-';
}

}  // namespace

std::string QuoteJson(std::string_view text) { return Quote(text, false); }

std::string QuoteToml(std::string_view text) { return Quote(text, true); }

std::string TomlKey(std::string_view key) {
  const bool bare = !key.empty() && std::ranges::all_of(key, IsBare);
  return bare ? std::string(key) : QuoteToml(key);
}

std::string TomlValue(const base::Value& value) {
  if (value.kind == base::Value::Kind::kString) return QuoteToml(value.text);
  if (!value.list) return value.text;
  std::string text;
  for (const base::Value& item : *value.list) text += (text.empty() ? "" : ", ") + TomlValue(item);
  return "[" + text + "]";
}

}  // namespace penstock::protocol::engine
