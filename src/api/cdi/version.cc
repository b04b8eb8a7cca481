// Determines the version that a specification requires: the latest of those that introduced a
// feature it uses.
#include "api/cdi/version.h"

#include <algorithm>
#include <cctype>

#include "api/cdi/spec.h"

namespace penstock::api::cdi {

namespace {

constexpr std::string_view kEarliest = "0.3.0";  // the earliest in use

/// Whether the edits of the specification itself, or of one of its devices, satisfy the predicate.
template <typename Predicate>
bool AnyEdits(const Spec& spec, Predicate predicate) {
  return predicate(spec.edits) || std::ranges::any_of(spec.devices, [&](const Device& device) {
           return predicate(device.edits);
         });
}

bool HasMountType(const Spec& spec) {
  return AnyEdits(spec, [](const CdiEdits& edits) {
    return std::ranges::any_of(edits.mounts,
                               [](const Mount& mount) { return !mount.type.empty(); });
  });
}

bool HasHostPath(const Spec& spec) {
  return AnyEdits(spec, [](const CdiEdits& edits) {
    return std::ranges::any_of(edits.nodes,
                               [](const DeviceNode& node) { return !node.host_path.empty(); });
  });
}

bool HasNameWithDigit(const Spec& spec) {
  return std::ranges::any_of(spec.devices, [](const Device& device) {
    return !device.name.empty() &&
           std::isdigit(static_cast<unsigned char>(device.name.front())) != 0;
  });
}

bool HasAnnotations(const Spec& spec) {
  return !spec.annotations.empty() || std::ranges::any_of(spec.devices, [](const Device& device) {
    return !device.annotations.empty();
  });
}

bool HasDotInClass(const Spec& spec) {
  const auto slash = spec.kind.find('/');
  return slash != std::string::npos && spec.kind.find('.', slash) != std::string::npos;
}

bool HasIntelRdt(const Spec& spec) {
  return AnyEdits(spec, [](const CdiEdits& edits) { return edits.intel_rdt.has_value(); });
}

bool HasGroups(const Spec& spec) {
  return AnyEdits(spec, [](const CdiEdits& edits) { return !edits.additional_gids.empty(); });
}

bool HasNewIntelRdt(const Spec& spec) {
  return AnyEdits(spec, [](const CdiEdits& edits) {
    return edits.intel_rdt &&
           (!edits.intel_rdt->schemata.empty() || edits.intel_rdt->enable_monitoring);
  });
}

bool HasNetDevices(const Spec& spec) {
  return AnyEdits(spec, [](const CdiEdits& edits) { return !edits.net_devices.empty(); });
}

struct Feature {
  std::string_view version;
  std::string_view name;
  bool (*is_in)(const Spec&);
};

// Latest first.
constexpr Feature kFeatures[] = {
    {"1.1.0", "netDevices", HasNetDevices},
    {"1.1.0", "schemata or enableMonitoring of intelRdt", HasNewIntelRdt},
    {"0.7.0", "intelRdt", HasIntelRdt},
    {"0.7.0", "additionalGids", HasGroups},
    {"0.6.0", "annotations", HasAnnotations},
    {"0.6.0", "a '.' in the class of the kind", HasDotInClass},
    {"0.5.0", "hostPath of a device node", HasHostPath},
    {"0.5.0", "a device's name that begins with a digit", HasNameWithDigit},
    {"0.4.0", "type of a mount", HasMountType},
};

const Feature* Newest(const Spec& spec) {
  const auto* found =
      std::ranges::find_if(kFeatures, [&](const Feature& feature) { return feature.is_in(spec); });
  return found == std::end(kFeatures) ? nullptr : found;
}

}  // namespace

namespace internal {

const std::vector<std::string>& Versions() {
  static const auto* const versions = new std::vector<std::string>{
      "0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"};
  return *versions;
}

std::optional<std::size_t> PlaceOf(std::string_view version) {
  if (version.starts_with('v')) version.remove_prefix(1);
  const auto& versions = Versions();
  const auto found = std::ranges::find(versions, version);
  if (found == versions.end()) return std::nullopt;
  return static_cast<std::size_t>(found - versions.begin());
}

}  // namespace internal

std::string WhatTakesMinimum(const Spec& spec) {
  const Feature* newest = Newest(spec);
  return newest == nullptr ? "" : std::string(newest->name);
}

bool IsLater(std::string_view version, std::string_view than) {
  const std::size_t unknown = internal::Versions().size();
  return internal::PlaceOf(version).value_or(unknown) > internal::PlaceOf(than).value_or(unknown);
}

std::string MinimumVersion(const Spec& spec) {
  const Feature* newest = Newest(spec);
  return std::string(newest == nullptr ? kEarliest : newest->version);
}

}  // namespace penstock::api::cdi
