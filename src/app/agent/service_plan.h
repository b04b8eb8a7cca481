// Which services of the host are stopped before a device is divided: of those that are listed, the
// ones that have the device open, and none that the node needs. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "protocol/systemd/services.h"

namespace penstock::app {

struct ServicePlan {
  /// Units that have to be known first; then nothing else is said.
  std::set<std::string> unknown;
  /// In the order of the list.
  std::vector<std::string> stop;
  /// These, each after the active units that stop with it: the reverse of the order in which all
  /// of them are started again.
  std::vector<std::string> stopped;
  /// Services that have the device open and are not stopped, with the reason.
  std::map<std::string, std::string> kept;
};

/// What is known of the machine.
struct ServiceFacts {
  std::vector<std::string> listed;  ///< names, in the order in which to stop them
  std::set<std::string> holders;    ///< control groups of the machine's processes that
                                    ///< have the device open, as we see them
  std::set<std::string> own;        ///< control groups of this process
  std::vector<protocol::systemd::ServiceUnit> units;  ///< as far as they are known
  std::set<std::string> asked;  ///< names that are not in `units` exist no more
};

ServicePlan PlanServices(const ServiceFacts& facts);

}  // namespace penstock::app
