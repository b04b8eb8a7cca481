// What statuses say about drivers. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "operator/driver/rollout_plan.h"

namespace penstock::cluster {

/// The part `drivers` of a policy's status: counts, why no further node begins, and at most
/// kMostWaiting nodes of each driver with state and reason; kernels that nodes will boot next.
nlohmann::json DriversInStatus(const std::vector<DriverOutcome>& drivers);

/// Which images precompiled drivers lack for the kernels that nodes will boot next, as far as is
/// known: a sentence for each. Nothing: no node will boot another kernel, or nothing is known yet.
std::optional<std::vector<std::string>> MissingImagesOf(const std::vector<DriverOutcome>& drivers);

/// What keeps a driver from being ready.
struct DriverTrouble {
  std::string reason;   ///< of the conditions, as NVIDIA's operator has them; empty: nothing
  std::string message;  ///< for people
  bool error = false;   ///< only a change of an object ends it
};
DriverTrouble TroubleOfDriver(const DriverOutcome& driver);

}  // namespace penstock::cluster
