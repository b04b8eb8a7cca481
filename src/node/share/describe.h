// Names allocators, devices and holders in messages for users. Pure.
#pragma once

#include <string>

#include "device/model.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"

namespace penstock::node::share {

/// Names an allocator; "" is the name of none.
std::string DescribeAllocator(const std::string& allocator);

/// "GPU 3 (GPU-5a...)".
std::string Describe(const device::Facts& facts);

/// What all devices of this node are called: "GPU"; "device" where they are of several kinds.
std::string NameOfDevices(const inventory::Snapshot& inventory);

/// "pod ml/train-0", "r-m3k2-1 of ann". Without the command line, which may contain secrets: these
/// texts reach the API server and pods' events.
std::string Describe(const ledger::Lease& lease);

/// The holders of a device.
struct DeviceHolders {
  std::string text;      ///< "pod ml/train-0 and 2 more"; empty: none
  bool counted = false;  ///< an allocator that counts itself allocated it to one of them
};
DeviceHolders HoldersOf(const ledger::Snapshot& ledger, const std::string& device);

}  // namespace penstock::node::share
