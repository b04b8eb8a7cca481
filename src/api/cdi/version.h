// The versions of the format, and what each brought (specs-go/version.go 1.1.0). Private to api/cdi.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/cdi/spec.h"

namespace penstock::api::cdi::internal {

/// The place of a version among those there are; a leading "v" is tolerated. Nothing for one that is none of them.
std::optional<std::size_t> PlaceOf(std::string_view version);

/// "0.1.0" ... "1.1.0", oldest first.
const std::vector<std::string>& Versions();

/// What in the specification takes its lowest version, for people: "hostPath of a device node". Empty where anything can read it.
std::string WhatTakesMinimum(const Spec& spec);

}  // namespace penstock::api::cdi::internal
