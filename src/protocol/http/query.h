// Reads the query of a request ("node=1&from=200"). Does no I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penstock::protocol::http {

/// Returns the value of the first parameter of this name, with %41 and + decoded; nothing if there
/// is none, or if it is malformed.
std::optional<std::string> QueryValue(std::string_view query, std::string_view name);

/// Encodes a value for a query: all but letters, digits and "-._~" as %41 (RFC 3986, 2.3).
std::string QueryEncoded(std::string_view text);

}  // namespace penstock::protocol::http
