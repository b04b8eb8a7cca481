// What another configuration would change on a node: what `penstock plan -o json` says. Documented in docs/reference/plan.md; stable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/config_change.h"
#include "base/core/result.h"

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

/// A device behind a resource name, as a request finds it now.
struct PlannedDevice {
  std::string door, resource;
  std::string id;
  int index = -1;
  std::string model;
  std::size_t slots = 0, free = 0;
  std::string reason;  ///< why not all of them are free: the first that is in the way
  bool operator==(const PlannedDevice&) const = default;
};

/// A kind of link, and which pairs of a chosen set are linked so.
struct PlannedLink {
  std::string link;                ///< "12 fabric links", "one PCIe switch"
  std::vector<std::string> pairs;  ///< by index, "0-3"
  bool operator==(const PlannedLink&) const = default;
};

/// The set that a request for so many would get now, and why.
struct PlannedChoice {
  std::string door, resource;
  std::size_t size = 0;
  std::vector<std::string> devices;   ///< ids, in order of index
  std::int64_t within = 0, left = 0;  ///< scores of the links within the set, and of those among what is left
  bool exact = true;                  ///< false: a good set, not the best of all
  std::vector<PlannedLink> links;     ///< best first
  std::string reason;                 ///< why there is no set; then it has no devices
  bool operator==(const PlannedChoice&) const = default;
};

struct Plan {
  std::string origin;  ///< of the configuration that would be in force
  std::vector<Change> changes;
  std::vector<PlannedResource> resources;  ///< those that change
  std::vector<PlannedLabel> labels;        ///< likewise
  std::vector<std::string> not_yet, remarks;
  std::vector<PlannedDevice> devices;  ///< where the choice was to be explained
  std::vector<PlannedChoice> choices;  ///< likewise
  bool operator==(const Plan&) const = default;
};

std::string ToJson(const Plan& plan);
base::Result<Plan> ParsePlan(std::string_view json);

}  // namespace penstock::api
