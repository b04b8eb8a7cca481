// Kubernetes' rules for labels, and the names of labels that are no vendor's. Knows no device.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penstock::api {

/// NFD's namespace, of which its users select on "<this>pci-10de.present" and its kin.
inline constexpr std::string_view kFeaturePrefix = "feature.node.kubernetes.io/";

/// Kubernetes, "Labels and selectors": [prefix/]name; the prefix a DNS subdomain of at most 253 characters, the name at most 63 of
/// [A-Za-z0-9._-], alphanumeric at both ends.
bool IsLabelKey(std::string_view key);

/// Empty, or as a key's name.
bool IsLabelValue(std::string_view value);

/// The value as it is if valid; else cut to 63 characters and trimmed at its ends to alphanumeric ones. Nothing where other characters are
/// in it, or nothing would be left.
std::optional<std::string> FitLabelValue(std::string_view value);

}  // namespace penstock::api
