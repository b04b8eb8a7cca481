// The versions of the format (specs-go/version.go 1.1.0). Private to api/cdi.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::api::cdi::internal {

/// The place of a version among those there are; a leading "v" is tolerated. Nothing for one that is none of them.
std::optional<std::size_t> PlaceOf(std::string_view version);

/// "0.1.0" ... "1.1.0", oldest first.
const std::vector<std::string>& Versions();

}  // namespace penstock::api::cdi::internal
