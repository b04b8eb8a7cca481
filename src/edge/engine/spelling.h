// How values and keys are written in TOML and JSON.
#pragma once

#include <string>
#include <string_view>

#include "base/core/document.h"

namespace penstock::edge::engine {

std::string QuoteJson(std::string_view text);

/// A basic string of TOML: every character as TOML 1.0 allows it.
std::string QuoteToml(std::string_view text);

/// A key of TOML, bare where it may be.
std::string TomlKey(std::string_view key);

/// A scalar or a list of scalars.
std::string TomlValue(const base::Value& value);

}  // namespace penstock::edge::engine
