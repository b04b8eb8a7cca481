// On which devices parts are created on demand.
#pragma once

#include <string>
#include <vector>

#include "device/model.h"
#include "node/change/divisions.h"
#include "node/inventory/inventory.h"

namespace penstock::node::change {

/// On the control executor.
class PartSites {
 public:
  PartSites(const Divisions::Node& node, const Divisions::VendorOf& vendor_of)
      : node_(node), vendor_of_(vendor_of) {}

  /// The devices that are set aside (share::OnDemandDevices). Returns whether they are others.
  bool Set(const std::vector<std::string>& set_aside);

  bool IsSetAside(const inventory::Entry& entry) const;

  /// Of a device that is set aside; null: it has no such parts. Only those whose placements the
  /// driver lists are created, because a restarted agent finds them by their placement.
  const device::PartProfile* ProfileOn(const inventory::Entry& entry,
                                       const std::string& name) const;

  /// The devices that are set aside and have the profile. `model`: a glob; empty: any.
  std::vector<const inventory::Entry*> For(const std::string& profile, const std::string& model,
                                           const inventory::Snapshot& snapshot) const;

  /// Why parts are never created on a device as it is assigned and configured; empty: they are.
  std::string WhyClosed(const inventory::Entry& entry) const;

 private:
  const Divisions::Node node_;
  const Divisions::VendorOf& vendor_of_;
  std::vector<std::string> set_aside_;
};

}  // namespace penstock::node::change
