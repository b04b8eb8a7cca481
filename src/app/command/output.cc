#include "app/command/output.h"

#include <set>

#include <nlohmann/json.hpp>

#include "base/core/json_text.h"
#include "base/core/strings.h"

namespace penstock::app::command {

namespace {

using base::Code;
using base::Error;
using base::Result;
using Json = nlohmann::ordered_json;

/// Whether a reader of YAML would read the plain text as this text, and as nothing else.
bool IsPlain(const std::string& text) {
  constexpr std::string_view kSafe =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-";
  if (text.empty() || text.find_first_not_of(kSafe) != std::string::npos) return false;
  const char first = text.front();
  if ((first < 'a' || first > 'z') && (first < 'A' || first > 'Z') && first != '/') return false;
  const std::string lower = base::ToLower(text);
  for (const char* word : {"null", "true", "false", "yes", "no", "on", "off", "y", "n"})
    if (lower == word) return false;
  return true;
}

/// JSON's texts are texts of YAML, too.
std::string Scalar(const Json& value) {
  if (value.is_string() && IsPlain(value.get_ref<const std::string&>()))
    return value.get<std::string>();
  return base::JsonText(value, -1, true);
}

void AppendYaml(const Json& value, const std::string& indent, std::string& text) {
  if (!value.is_structured() || value.empty()) {
    text += Scalar(value) + "\n";
    return;
  }
  bool first = true;
  const auto begin = [&] {
    if (!first) text += indent;
    first = false;
  };
  if (value.is_array()) {
    for (const Json& item : value) {
      begin();
      text += "- ";
      AppendYaml(item, indent + "  ", text);
    }
    return;
  }
  for (const auto& [key, item] : value.items()) {
    begin();
    text += Scalar(key) + ":";
    const bool nested = item.is_structured() && !item.empty();
    // A list in an object begins in the column of its key, as kubectl prints it.
    const std::string below = item.is_array() ? indent : indent + "  ";
    text += nested ? "\n" + below : " ";
    AppendYaml(item, below, text);
  }
}

void RemoveGeneration(Json& value) {
  if (value.is_object()) value.erase("generation");
  if (value.is_structured())
    for (Json& one : value) RemoveGeneration(one);
}

}  // namespace

std::string WithoutGeneration(std::string_view json) {
  Json value = base::ParseJson<Json>(json);
  if (value.is_discarded()) return std::string(json);
  RemoveGeneration(value);
  return base::JsonText(value);
}

Result<std::string> YamlOf(std::string_view json) {
  const Json value = base::ParseJson<Json>(json);
  if (value.is_discarded()) return Error(Code::kInternal, "the output is not JSON");
  std::string text;
  AppendYaml(value, "", text);
  return text;
}

Result<std::string> Format(const Output& output, std::string_view json) {
  std::string text;
  if (output.format == "yaml") {
    ASSIGN(text, YamlOf(json));
    return output.watch ? "---\n" + text : text;
  }
  if (output.format == "jsonpath") {
    ASSIGN(text, JsonPath(output.path, json));
    return text.ends_with('\n') ? text : text + "\n";
  }
  if (output.format == "name") {
    ASSIGN(const std::string names,
           JsonPath("{range " + std::string(output.names.path) + "}{@}{\"\\n\"}{end}", json));
    const std::string prefix =
        output.names.kind.empty() ? "" : std::string(output.names.kind) + "/";
    std::set<std::string> seen;  // a list may be there twice, under an old key, too
    for (const std::string& name : base::Split(names, '\n'))
      if (!name.empty() && seen.insert(name).second) text += prefix + name + "\n";
    return text;
  }
  const Json value = base::ParseJson<Json>(json);
  if (value.is_discarded()) return Error(Code::kInternal, "the output is not JSON");
  return base::JsonText(value, output.watch ? -1 : 2) + "\n";
}

}  // namespace penstock::app::command
