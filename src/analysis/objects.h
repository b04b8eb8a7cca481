// Reads JSON objects of the API server leniently: a field that is missing or of another type reads
// as empty.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "protocol/kube/api.h"

namespace penstock::analysis {

using protocol::kube::Json;

/// The string at a path of keys, e.g. {"metadata", "name"}.
std::string TextAt(const Json& object, std::initializer_list<std::string_view> path);

/// The value at a path of keys; null where there is none.
const Json& At(const Json& object, std::initializer_list<std::string_view> path);

/// The string values of a map, e.g. labels.
std::map<std::string, std::string> TextsAt(const Json& object,
                                           std::initializer_list<std::string_view> path);

}  // namespace penstock::analysis
