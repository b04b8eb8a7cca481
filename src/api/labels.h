// Kubernetes' rules for labels, and label names that belong to no vendor. Independent of devices.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace penstock::api {

/// NFD's label namespace. NFD's users select on labels such as "<this>pci-10de.present".
inline constexpr std::string_view kFeaturePrefix = "feature.node.kubernetes.io/";

/// Whether the text is a valid label key (Kubernetes, "Labels and selectors"): [prefix/]name, where
/// the prefix is a DNS subdomain of at most 253 characters and the name has at most 63 characters
/// of [A-Za-z0-9._-] and is alphanumeric at both ends.
bool IsLabelKey(std::string_view key);

/// Whether the text is a valid label value: empty, or with the syntax of a key's name.
bool IsLabelValue(std::string_view value);

/// Returns a valid value unchanged; cuts a longer one to 63 characters and trims its ends to
/// alphanumeric characters. Returns nothing if the value contains other characters or if nothing
/// would remain.
std::optional<std::string> FitLabelValue(std::string_view value);

}  // namespace penstock::api
