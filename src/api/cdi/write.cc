// Writes a specification as text: builds one tree with the keys in the order of the format, and
// prints it as JSON or YAML.
#include <algorithm>
#include <cctype>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "api/cdi/spec_fields.h"
#include "base/core/json_text.h"
#include "base/core/strings.h"

namespace penstock::api::cdi {

namespace {

using Json = nlohmann::ordered_json;

/// Whether both YAML 1.1, which engines read, and YAML 1.2 read these characters as a text.
bool IsPlain(const std::string& text) {
  static constexpr std::string_view kWords[] = {"y",   "n",    "yes",   "no",  "on",
                                                "off", "true", "false", "null"};
  const auto is_word = [&](std::string_view word) {
    return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                      [](unsigned char a, unsigned char b) { return std::tolower(a) == b; });
  };
  if (text.empty() || text.back() == ':' || std::ranges::any_of(kWords, is_word)) return false;
  // Three numbers between dots, such as a version, are not a number; neither is text that begins
  // with a letter, nor a path or an option.
  const bool version = std::ranges::count(text, '.') == 2 &&
                       text.find_first_not_of("0123456789.") == std::string::npos &&
                       std::isdigit(static_cast<unsigned char>(text.front())) != 0;
  const bool option = text.size() > 2 && text.starts_with("--") && text[2] != '-';
  const unsigned char first = static_cast<unsigned char>(text.front());
  if (!version && !option && std::isalpha(first) == 0 && first != '/' && first != '_') return false;
  return std::ranges::all_of(text, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("/_.=,+@:-").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

/// A double-quoted YAML text allows everything that an ASCII JSON text does, except surrogate
/// pairs: a character beyond 16 bits is written as one escape.
std::string JoinSurrogates(std::string json) {
  constexpr std::size_t kEscape = 6;  // \ud83d
  const auto half = [&json](std::size_t at) {
    return base::ParseUint(std::string_view(json).substr(at + 2, 4), 16).value_or(0);
  };
  for (std::size_t at = json.find('\\'); at != std::string::npos; at = json.find('\\', at + 2)) {
    if (json[at + 1] != 'u' || half(at) < 0xd800 || half(at) > 0xdbff) continue;
    char joined[16];
    std::snprintf(joined, sizeof joined, "\\U%08x",
                  static_cast<unsigned>(0x10000 + ((half(at) - 0xd800) << 10) +
                                        (half(at + kEscape) - 0xdc00)));
    json.replace(at, 2 * kEscape, joined);
  }
  return json;
}

std::string Scalar(const Json& value) {
  if (value.is_string() && IsPlain(value.get_ref<const std::string&>()))
    return value.get<std::string>();
  return JoinSurrogates(base::JsonText(value, -1, true));
}

/// Writes the value after a key or a dash, to the end of its last line. Maps and lists begin on a
/// line of their own; after a dash, a map begins on the dash's line.
class YamlWriter {
 public:
  std::string Write(const Json& map) {
    text_ = "---\n";
    WriteMap(map, 0, false);
    return std::move(text_);
  }

 private:
  void WriteMap(const Json& map, std::size_t indent, bool after_dash) {
    for (const auto& [key, value] : map.items()) {
      if (!after_dash) text_.append(indent, ' ');
      after_dash = false;
      text_ += Scalar(key) + ":";
      WriteValue(value, indent + 2);
    }
  }

  void WriteValue(const Json& value, std::size_t indent) {
    if (value.is_structured() && value.empty()) {
      text_ += value.is_array() ? " []\n" : " {}\n";
    } else if (value.is_object()) {
      text_ += "\n";
      WriteMap(value, indent, false);
    } else if (value.is_array()) {
      text_ += "\n";
      for (const Json& item : value) WriteItem(item, indent);
    } else {
      text_ += " " + Scalar(value) + "\n";
    }
  }

  void WriteItem(const Json& item, std::size_t indent) {
    text_.append(indent, ' ');
    text_ += "- ";
    if (item.is_object() && !item.empty()) {
      WriteMap(item, indent + 2, true);
    } else {
      text_ += Scalar(item) + "\n";
    }
  }

  std::string text_;
};

}  // namespace

std::string ToJson(const Spec& spec) {
  return base::JsonText(base::ToJsonObject<Json>(spec), 2) + "\n";
}

std::string ToYaml(const Spec& spec) { return YamlWriter().Write(base::ToJsonObject<Json>(spec)); }

}  // namespace penstock::api::cdi
