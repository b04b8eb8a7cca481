// The versions of the CDI format (specs-go/version.go 1.1.0). Private to api/cdi.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::api::cdi::internal {

/// Returns the index of a version among the known ones; accepts a leading "v". Returns nothing for
/// an unknown version.
std::optional<std::size_t> PlaceOf(std::string_view version);

/// Returns "0.1.0" ... "1.1.0", oldest first.
const std::vector<std::string>& Versions();

}  // namespace penstock::api::cdi::internal
