// Prints a JSON document of nlohmann's library.
#pragma once

#include <string>

namespace penstock::base {

/// Returns a JSON document as text. Invalid UTF-8, as in the command line of a process, becomes
/// U+FFFD.
template <typename Json>
std::string JsonText(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace penstock::base
