// Formats what verbs print: JSON, YAML, names and JSONPath templates, all from the verb's JSON.
#pragma once

#include <string>
#include <string_view>

#include "app/command/verb.h"
#include "base/core/result.h"

namespace penstock::app::command {

/// How the user wants to read the output.
struct Output {
  std::string format = "table";  ///< "table", "wide", "json", "yaml", "name", "jsonpath", "csv"
  std::string path;              ///< of jsonpath
  NamePath names;                ///< of the verb
  bool headers = true;
  bool watch = false;

  /// The verb has to return JSON.
  bool json() const {
    return format == "json" || format == "yaml" || format == "name" || format == "jsonpath";
  }
  bool wide() const { return format == "wide"; }
};

/// Formats a verb's JSON. While watching, JSON is one line. Ends with a line feed.
/// kInvalidArgument: the template is invalid; kInternal: the text is not JSON.
base::Result<std::string> Format(const Output& output, std::string_view json);

/// Returns the JSON without its keys `generation`, which count readings: two texts are equal where
/// nothing changed that a user would see. The same text where it is not JSON.
std::string WithoutGeneration(std::string_view json);

/// Returns what is wrong with a template of -o jsonpath; OK: nothing.
base::Status CheckJsonPath(std::string_view path);

/// Evaluates a template of kubectl's JSONPath
/// (https://kubernetes.io/docs/reference/kubectl/jsonpath/): text with expressions in braces, or a
/// single expression without braces. Fields, [n], [a:b], [*], ['key','other'], "..", filters
/// [?(@.a=="b")], range and end. What does not exist is empty. kInvalidArgument: it is not a
/// template, with the place; kInternal: the text is not JSON.
base::Result<std::string> JsonPath(std::string_view path, std::string_view json);

/// Returns the JSON as YAML, in the order of its keys. kInternal: the text is not JSON.
base::Result<std::string> YamlOf(std::string_view json);

}  // namespace penstock::app::command
