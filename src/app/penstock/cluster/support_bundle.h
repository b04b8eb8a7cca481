// Gathers what a person needs who is to find a fault in a cluster: our objects, the nodes' reports
// and explanations, events, logs. Reads no Secret, and changes nothing.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/penstock/cluster/cluster.h"
#include "app/penstock/cluster/tar.h"
#include "base/core/clock.h"

namespace penstock::app {

struct BundleOptions {
  bool logs = true;
  int lines = 5000;  ///< of each log, the last ones
};

/// One file for each kind of object, node and log; "index.txt" lists them, and what could not be
/// read with the reason. `progress` gets each step before it begins. Blocks for as long as the
/// server takes: a call at most ten seconds.
///
/// Removed from objects: managedFields, the annotation last-applied-configuration, and values of
/// environment variables whose names say that they are secret.
std::vector<ArchivedFile> GatherBundle(const ApiServer& server, const BundleOptions& options,
                                       const std::function<void(const std::string&)>& progress,
                                       base::WallTime now);

}  // namespace penstock::app
