// Who uses the devices of this node, with their parts. Changes nothing.
#pragma once

#include <string>
#include <vector>

#include "node/change/device_changes.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"

namespace penstock::node::change {

/// On the control executor. All references must outlive it.
struct DeviceUse {
  const inventory::Inventory& inventory;
  const ledger::Ledger& ledger;
  const DeviceChanges& changes;

  /// The device and its parts.
  std::vector<std::string> WithParts(const std::string& id) const;

  /// Whether no lease holds the device or a part of it.
  bool IsReleased(const std::string& id) const;

  /// Who uses the device or a part of it, as a clause: "held by pod ml/train"; empty: it is free.
  /// Processes of a sharing server without clients do not count: it ends once the device is
  /// withdrawn.
  std::string User(const std::string& id) const;
};

}  // namespace penstock::node::change
