// The reader of YAML: base/core/document.h says what it builds.
#pragma once

#include <string_view>

#include "base/core/document.h"

namespace penstock::base {

/// Reads one YAML document; JSON is read by ParseJson. Errors (kInvalidArgument) name file:line:column, all duplicates together: syntax,
/// duplicate keys, aliases and anchors, tags, more than one document, non-UTF-8, over-deep, over-long. An empty text is a null Value.
Result<Value> ParseYaml(std::string_view text, std::string_view file, const ParseLimits& limits = {});

/// The same with `problems` of the caller, an error where there are any. Where they are lenient, the text is read as sigs.k8s.io/yaml
/// (goyaml.v2) reads it: anchors, aliases and merge keys are resolved, `yes` and `on` are booleans, of keys that are there twice the last
/// counts, and so does the first of several documents. Aliases that make a small text a large document are an error.
Result<Value> ParseYaml(std::string_view text, Problems& problems, const ParseLimits& limits = {});

}  // namespace penstock::base
