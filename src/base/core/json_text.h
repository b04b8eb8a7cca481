// Prints and reads documents of nlohmann's library, compiled once for all that use them.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace penstock::base {

/// Returns a JSON document as text. Invalid UTF-8, as in the command line of a process, becomes
/// U+FFFD. `ascii`: other characters are escaped.
std::string JsonText(const nlohmann::json& json, int indent = -1, bool ascii = false);
std::string JsonText(const nlohmann::ordered_json& json, int indent = -1, bool ascii = false);

/// Parses a text, as nlohmann::json or ordered_json; a discarded value where it is malformed.
template <typename Json>
Json ParseJson(std::string_view text);

}  // namespace penstock::base
