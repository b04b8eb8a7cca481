// Prints, reads and makes documents of nlohmann's library, compiled once for all that use them.
#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

namespace penstock::base {

class Value;

/// Returns a JSON document as text. Invalid UTF-8, as in the command line of a process, becomes
/// U+FFFD. `ascii`: other characters are escaped.
std::string JsonText(const nlohmann::json& json, int indent = -1, bool ascii = false);
std::string JsonText(const nlohmann::ordered_json& json, int indent = -1, bool ascii = false);

/// Parses a text, as nlohmann::json or ordered_json; a discarded value where it is malformed.
template <typename Json>
Json ParseJson(std::string_view text);

/// A part of a document, as nlohmann::json or ordered_json (with its keys in their order).
template <typename Json>
Json JsonOf(const Value& value);

}  // namespace penstock::base
