// Reads and compares JSON values of objects, which anyone may have written: nothing is assumed of
// their types.
#pragma once

#include <map>
#include <string>

#include <nlohmann/json.hpp>

#include "protocol/kube/api.h"

namespace penstock::cluster {

using protocol::kube::Json;

/// The text at a JSON pointer; empty where there is none.
std::string TextAt(const Json& object, const std::string& pointer);

/// The value at a JSON pointer, or null.
const Json* Find(const Json& object, const std::string& pointer);

/// The list at a JSON pointer; an empty one where there is none.
const Json& ListAt(const Json& object, const std::string& pointer);

/// The texts of a map, such as labels; other values are left out.
std::map<std::string, std::string> TextsAt(const Json& object, const std::string& pointer);

/// The merge patch (RFC 7386) that turns `found` into `wanted`; an empty object if they are equal.
Json MergePatchOf(const Json& found, const Json& wanted);

/// Whether an API server has in `found` what was applied as `wanted`: it may have added fields, and
/// elements of a list are compared by their name where they have one.
bool Covers(const Json& found, const Json& wanted);

}  // namespace penstock::cluster
