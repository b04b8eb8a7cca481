// Doors, devices and holders as people are told of them. Pure.
#pragma once

#include <string>

#include "device/model.h"
#include "node/ledger/ledger.h"

namespace penstock::door {

/// "the local door", "no door".
std::string DoorInWords(const std::string& door);

/// "GPU 3 (GPU-5a...)".
std::string InWords(const device::Facts& facts);

/// "pod ml/train-0", "r-m3k2-1 of ann". Without the command line, which may hold secrets: these words reach the API server and pods'
/// events.
std::string InWords(const node::ledger::Lease& lease);

/// Who holds something of a device.
struct Holders {
  std::string text;         ///< "pod ml/train-0 and 2 more"; empty: nobody
  bool of_kubelet = false;  ///< one of them got it from the kubelet
};
Holders HoldersOf(const node::ledger::Snapshot& ledger, const std::string& device);

}  // namespace penstock::door
