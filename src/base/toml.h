// A strict reader of TOML 1.0, in which the files of container engines are written.
// base/core/document.h defines the result.
#pragma once

#include <string_view>

#include "base/core/document.h"

namespace penstock::base {

/// Reads a TOML document: a map, its keys in file order. Dates and times become strings as written.
/// Errors (kInvalidArgument) name file:line:column: syntax, duplicate keys, non-UTF-8, too deep,
/// too long. An empty text is an empty map.
Result<Value> ParseToml(std::string_view text, std::string_view file,
                        const ParseLimits& limits = {});

}  // namespace penstock::base
