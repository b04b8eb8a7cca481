// The labels of AMD's node labeller (k8s-device-plugin, cmd/k8s-node-labeller).
#pragma once

#include <map>
#include <string>

#include "device/dialect.h"

namespace penstock::backend::amd {

/// "spx_nps1", of a whole GPU that can be divided; of a partition, its profile; empty: it cannot
/// be.
std::string PartitionModes(const device::Facts& device);

/// amd.com/gpu.KIND=VALUE where all devices have the same, else amd.com/gpu.KIND.VALUE=COUNT; and
/// the same below beta.amd.com, where the second form is always there. Partitions count in place
/// of the GPU that is divided into them.
std::map<std::string, std::string> NodeLabels(const device::LabelFacts& facts);

}  // namespace penstock::backend::amd
