// What is said in Events about a Node whose driver is upgraded. Pure.
#pragma once

#include <optional>
#include <string>

#include "operator/driver/node_upgrade.h"

namespace penstock::cluster {

/// The reason of these Events, as in NVIDIA's operator (k8s-operator-libs: GetEventReason).
inline constexpr char kUpgradeReason[] = "GPUDriverUpgrade";

struct UpgradeEvent {
  bool warning = false;
  std::string message;
  bool operator==(const UpgradeEvent&) const = default;
};

/// What is to be said once `step` is written to a Node whose record was `before`: that its upgrade
/// begins, is kept from going on, fails, is rolled back or done, and that a canary stopped working.
/// Nothing for other steps, so that an upgrade without trouble has two Events.
std::optional<UpgradeEvent> UpgradeEventOf(const UpgradeRecord& before, const NodeStep& step);

}  // namespace penstock::cluster
