// Writes JSON as YAML in block style, for golden copies that people read. For tests only.
#pragma once

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "base/core/strings.h"

namespace penstock::api {

/// Whether readers of YAML 1.1 or 1.2 take the word for something other than a text.
inline bool IsYamlWord(std::string_view text) {
  static constexpr std::array<std::string_view, 9> kWords = {"true", "false", "null", "on", "off",
                                                             "yes",  "no",    "y",    "n"};
  return std::ranges::find(kWords, base::ToLower(text)) != kWords.end();
}

/// Texts are quoted as in JSON, except plain words.
inline std::string YamlScalar(const nlohmann::ordered_json& value) {
  if (!value.is_string()) return value.dump();
  const auto& text = value.get_ref<const std::string&>();
  const bool plain = !text.empty() && std::isalpha(static_cast<unsigned char>(text.front())) != 0 &&
                     text.find_first_not_of(
                         "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-") ==
                         std::string::npos &&
                     !IsYamlWord(text);
  return plain ? text : value.dump();
}

inline std::string YamlText(const nlohmann::ordered_json& json, std::size_t depth = 0) {
  std::string text;
  const std::string indent(2 * depth, ' ');
  if (json.is_object())
    for (const auto& [key, value] : json.items()) {
      const bool inner = value.is_structured() && !value.empty();
      text += indent + YamlScalar(key) + ":" +
              (inner ? "\n" + YamlText(value, depth + 1) : " " + YamlScalar(value) + "\n");
    }
  if (json.is_array())
    for (const auto& value : json) {
      const bool inner = value.is_structured() && !value.empty();
      std::string item = inner ? YamlText(value, depth + 1) : "";
      text += inner ? indent + "- " + item.substr(indent.size() + 2)
                    : indent + "- " + YamlScalar(value) + "\n";
    }
  return text;
}

}  // namespace penstock::api
