// Chooses how containers of pods get their devices, from the configuration, the abilities of the
// node's engine and the folder of the CDI specifications. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/config/node_config.h"
#include "protocol/engine/cri/engine_watcher.h"

namespace penstock::adapter::kubelet {

/// The choice in force.
struct DeviceListChoice {
  /// False: the engine is still being asked, and nothing may be allocated before it answers.
  bool decided = true;
  std::vector<api::DeviceList> strategies;  ///< at least one
  bool files = true;                        ///< device files in addition to them
  std::string reason;                       ///< why, and what would change it: one sentence

  bool Has(api::DeviceList strategy) const;
  bool cdi() const;    ///< CDI specifications inject the devices
  bool alone() const;  ///< only CDI specifications do
  /// "cdi-cri"; "envvar", "device-files": as in reports.
  std::vector<std::string> Names() const;
  bool operator==(const DeviceListChoice&) const = default;
};

/// `engine` null: the engine is not asked. `folder`: where this agent writes specifications, as a
/// path that engines see; empty: it writes none.
DeviceListChoice ChooseDeviceList(const api::ContainersConfig& config,
                                  const protocol::engine::cri::EngineStatus* engine,
                                  const std::string& folder);

}  // namespace penstock::adapter::kubelet
