// The strict reader of TOML 1.0: base/core/document.h says what it builds. The files of container engines are written in it.
#pragma once

#include <string_view>

#include "base/core/document.h"

namespace penstock::base {

/// Reads a TOML document: a map, its keys in file order. Dates and times are strings as written. Errors (kInvalidArgument) name
/// file:line:column: syntax, duplicate keys, non-UTF-8, over-deep, over-long. An empty text is an empty map.
Result<Value> ParseToml(std::string_view text, std::string_view file, const ParseLimits& limits = {});

}  // namespace penstock::base
