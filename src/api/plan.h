// What another configuration would change on a node: what `penstock plan -o json` says. Documented in docs/reference/plan.md; stable.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/config_change.h"
#include "base/result.h"

namespace penstock::api {

/// The slots behind a resource name at one door.
struct PlannedResource {
  std::string door, resource;
  std::size_t before = 0, after = 0;
  Effect effect = Effect::kNow;
  std::vector<std::string> holders;  ///< of devices that would no longer be offered so; they keep what they hold
  bool operator==(const PlannedResource&) const = default;
};

struct PlannedLabel {
  std::string key;
  std::optional<std::string> before, after;
  Effect effect = Effect::kNow;
  bool operator==(const PlannedLabel&) const = default;
};

struct Plan {
  std::string origin;  ///< of the configuration that would be in force
  std::vector<Change> changes;
  std::vector<PlannedResource> resources;  ///< those that change
  std::vector<PlannedLabel> labels;        ///< likewise
  std::vector<std::string> not_yet, remarks;
  bool operator==(const Plan&) const = default;
};

std::string ToJson(const Plan& plan);
base::Result<Plan> ParsePlan(std::string_view json);

}  // namespace penstock::api
