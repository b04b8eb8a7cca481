// The preview of a configuration: what it would change on a node, as `penstock plan -o json` prints
// it. Documented in docs/reference/plan.md; stable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/config/config_change.h"
#include "base/core/result.h"

namespace penstock::api {

/// The number of slots behind a resource name of one allocator.
struct PreviewedResource {
  std::string allocator, resource;
  std::size_t before = 0, after = 0;
  Effect effect = Effect::kNow;
  std::vector<std::string> holders;  ///< of devices that would no longer be offered under this
                                     ///< name; they keep their leases
  bool operator==(const PreviewedResource&) const = default;
};

struct PreviewedLabel {
  std::string key;
  std::optional<std::string> before, after;
  Effect effect = Effect::kNow;
  bool operator==(const PreviewedLabel&) const = default;
};

/// A device behind a resource name, as a request sees it now.
struct PreviewedDevice {
  std::string allocator, resource;  ///< both empty if no allocator offers the device
  std::string id;
  int index = -1;
  std::string model;
  std::size_t slots = 0, free = 0;
  std::string reason;       ///< why not all slots are free: the first obstacle
  std::string number = {};  ///< of a part: "0:1"
  bool operator==(const PreviewedDevice&) const = default;
};

/// A kind of link, and the pairs of a chosen set that it connects.
struct PreviewedLink {
  std::string link;                ///< "12 fabric links", "one PCIe switch"
  std::vector<std::string> pairs;  ///< by index, "0-3"
  bool operator==(const PreviewedLink&) const = default;
};

/// The set of devices that a request for `size` devices would get now, and why.
struct PreviewedChoice {
  std::string allocator, resource;
  std::size_t size = 0;
  std::vector<std::string> devices;  ///< ids, in order of index
  /// Scores of the links within the set, and of the links among the remaining devices.
  std::int64_t within = 0, left = 0;
  bool exact = true;                 ///< false: a good set, not proven to be the best
  std::vector<PreviewedLink> links;  ///< best first
  std::string reason;                ///< why there is no set; `devices` is then empty
  bool operator==(const PreviewedChoice&) const = default;
};

struct ConfigPreview {
  std::string origin;  ///< of the configuration that would take effect
  std::vector<ConfigChange> changes;
  std::vector<PreviewedResource> resources;  ///< only those that change
  std::vector<PreviewedLabel> labels;        ///< only those that change
  std::vector<std::string> not_yet, remarks;
  std::vector<PreviewedDevice> devices;  ///< only if it was asked to explain choices
  std::vector<PreviewedChoice> choices;  ///< only if it was asked to explain choices
  bool operator==(const ConfigPreview&) const = default;
};

std::string ToJson(const ConfigPreview& preview);
base::Result<ConfigPreview> ParseConfigPreview(std::string_view json);

}  // namespace penstock::api
