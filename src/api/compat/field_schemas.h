// Schemas of vendors' custom resources from the tables of their fields. Private to api/compat.
#pragma once

#include <span>

#include <nlohmann/json_fwd.hpp>

#include "api/compat/resource_fields.h"

namespace penstock::api::compat::internal {

/// The schema of `spec`: unknown fields are kept.
nlohmann::ordered_json SpecSchema(std::span<const ResourceField> fields);

}  // namespace penstock::api::compat::internal
