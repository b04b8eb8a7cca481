// What the fields of a Penstock object mean, for its definition. Private to src/api.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace penstock::api {

/// Path below `spec` ("services[].port") → description.
const std::map<std::string, std::string_view, std::less<>>& PenstockDescriptions();

/// The same below `spec.drivers[]`.
const std::map<std::string, std::string_view, std::less<>>& DriverDescriptions();

}  // namespace penstock::api
