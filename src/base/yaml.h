// A reader of YAML. base/core/document.h defines the result.
#pragma once

#include <string_view>

#include "base/core/document.h"

namespace penstock::base {

/// Reads one YAML document; for JSON use ParseJson. Errors (kInvalidArgument) name
/// file:line:column, with all duplicates together: syntax, duplicate keys, aliases and anchors,
/// tags, more than one document, non-UTF-8, too deep, too long. An empty text is a null Value.
Result<Value> ParseYaml(std::string_view text, std::string_view file,
                        const ParseLimits& limits = {});

/// As above, with the caller's `problems`; returns an error if there are any. If `problems` is
/// lenient, the text is read as sigs.k8s.io/yaml (goyaml.v2) reads it: anchors, aliases and merge
/// keys are resolved, `yes` and `on` are booleans, the last of duplicate keys counts, and the first
/// of several documents counts. Aliases that expand a small text into a large document are an
/// error.
Result<Value> ParseYaml(std::string_view text, Problems& problems, const ParseLimits& limits = {});

/// As above, for JSON or YAML: reads a text that looks like JSON as JSON, so that what is legal
/// there (tabs) is accepted. A YAML flow map begins as JSON does.
Result<Value> ParseYamlOrJson(std::string_view text, Problems& problems);
Result<Value> ParseYamlOrJson(std::string_view text, std::string_view file);

}  // namespace penstock::base
