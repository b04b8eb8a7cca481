// The strict reader of YAML: base/core/document.h says what it builds.
#pragma once

#include <string_view>

#include "base/core/document.h"

namespace penstock::base {

/// Reads one YAML document; JSON is read by ParseJson. Errors (kInvalidArgument) name file:line:column, all duplicates together: syntax,
/// duplicate keys, aliases and anchors, tags, more than one document, non-UTF-8, over-deep, over-long. An empty text is a null Value.
Result<Value> ParseYaml(std::string_view text, std::string_view file, const ParseLimits& limits = {});

}  // namespace penstock::base
