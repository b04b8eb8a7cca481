// The volumes of a driver's pods. Private to operator/driver.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "operator/driver/driver_daemon_set.h"

namespace penstock::cluster {

struct DriverVolumes {
  nlohmann::json volumes = nlohmann::json::array();
  nlohmann::json driver_mounts = nlohmann::json::array();   ///< of the driver's container
  nlohmann::json peer_mounts = nlohmann::json::array();     ///< of the one for RDMA
  nlohmann::json prepare_mounts = nlohmann::json::array();  ///< of the init container
};

/// `missing`: what the pod needs and the namespace or the system does not have.
DriverVolumes VolumesOf(const api::DriverSpec& driver, const DriverPool& pool,
                        const DriverInstallation& installation, std::vector<std::string>& missing);

}  // namespace penstock::cluster
