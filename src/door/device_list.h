// How containers of the kubelet's door are given their devices: decided by what is configured, what the node's engine can do, and where
// specifications are written. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/node_config.h"
#include "edge/engine/cri/inquiry.h"

namespace penstock::door {

/// What is in force.
struct DeviceListing {
  bool decided = true;                      ///< false: the engine is being asked, and nothing may be given out before it has answered
  std::vector<api::DeviceList> strategies;  ///< at least one
  bool files = true;                        ///< device files beside them
  std::string reason;                       ///< why so, and what would change it: one sentence

  bool Has(api::DeviceList strategy) const;
  bool cdi() const;    ///< specifications give containers their devices
  bool alone() const;  ///< and nothing else does
  /// "cdi-cri"; "envvar", "device-files": as reports have it.
  std::vector<std::string> Words() const;
  bool operator==(const DeviceListing&) const = default;
};

/// `engine` null: nobody asks it. `folder`: where this agent writes specifications, as engines call it; empty: it does not.
DeviceListing DecideDeviceList(const api::ContainersConfig& config, const edge::engine::cri::Known* engine, const std::string& folder);

}  // namespace penstock::door
