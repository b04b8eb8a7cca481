// Spells values and keys in TOML and JSON.
#pragma once

#include <string>
#include <string_view>

#include "base/core/document.h"

namespace penstock::protocol::engine {

std::string QuoteJson(std::string_view text);

/// Returns a basic string of TOML, with every character as TOML 1.0 allows it.
std::string QuoteToml(std::string_view text);

/// Returns a TOML key, bare if it may be bare.
std::string TomlKey(std::string_view key);

/// Takes a scalar or a list of scalars.
std::string TomlValue(const base::Value& value);

}  // namespace penstock::protocol::engine
