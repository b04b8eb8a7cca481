// Publishes all devices of this node, with their facts and health, as one snapshot. Does not decide
// which devices are used.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/published.h"
#include "device/model.h"
#include "node/inventory/device_tree.h"
#include "node/inventory/pci_occupancy.h"

namespace penstock::node::inventory {

/// A device in its current state.
struct Entry {
  std::shared_ptr<const device::Facts> facts;
  device::Health health;
  /// The last one, without the counters of resets, which only the health monitor gets; null before
  /// the first.
  std::shared_ptr<const device::Reading> reading;
  base::WallTime read_at{};  ///< time of the last reading, kept when the device is gone; the epoch
                             ///< before the first
  std::string replaced;  ///< which device it replaced, one sentence; empty: no replacement is known
  std::string replaced_id;          ///< id of the replaced device
  int number = -1;                  ///< index by which rules select this device or its replacement;
                                    ///< of a part: that of its device; negative: none
  std::string withheld;             ///< see TreePlace
  std::vector<Ancestor> ancestors;  ///< see TreePlace

  /// Whether it is a part of this device, or of a part of it.
  bool IsPartOf(std::string_view device) const;
};

/// Where a vendor's driver was opened, as this process sees the paths and as the host does.
struct DriverLocation {
  bool container = false;  ///< a driver container brought it; otherwise it is the host's own
  std::string driver_root = "/", host_driver_root = "/";
  std::string dev_root = "/", host_dev_root = "/";  ///< each contains dev/, or is a /dev itself
  std::string instance;  ///< differs for each load of its module and each root that is put there
  std::string unused;    ///< why what a driver container put there is not used; empty: nothing is
                         ///< there, or it is used
  bool operator==(const DriverLocation&) const = default;
};

/// A vendor's driver in its current state. There is no entry before it was looked for.
struct VendorEntry {
  std::string vendor;
  std::shared_ptr<const device::Driver> driver;  ///< null while there is none
  std::string reason;  ///< why there is none: one sentence that says what to do
  std::shared_ptr<const DriverLocation> place = nullptr;  ///< null: as configured
  base::WallTime since{};  ///< when this driver was first opened, in this place
};

/// All devices at one moment, ordered by vendor and index; devices without an index come last, and
/// parts after their device. A change of health or of a reading leaves facts_generation unchanged,
/// so that nothing that is derived from facts is recomputed, and the time of a reading leaves both
/// unchanged.
struct Snapshot {
  std::uint64_t facts_generation = 0;
  std::uint64_t state_generation = 0;
  std::vector<VendorEntry> vendors;
  std::vector<Entry> devices;

  const Entry* Find(std::string_view id) const;
  const VendorEntry* FindVendor(std::string_view vendor) const;
};

/// Keeps the snapshot. Call the setters on the control executor. Each setter publishes once, and
/// only where something changed.
class Inventory {
 public:
  const base::Published<Snapshot>& published() const { return published_; }
  base::Published<Snapshot>& published() { return published_; }

  void SetVendor(VendorEntry vendor);

  /// Sets all devices of a vendor that exist now. A known device that is missing from `facts`
  /// stays, with health kGone, the reason and no index, until another device occupies its PCI
  /// address. The driver renumbers the devices that it still sees; an entry's `number` is the index
  /// that its PCI address had when all known devices were present.
  using WhyGone = std::function<std::string(const device::Facts&)>;
  void SetFacts(const std::string& vendor, std::vector<device::Facts> facts,
                const WhyGone& why_gone, base::WallTime now);
  void SetFacts(const std::string& vendor, std::vector<device::Facts> facts,
                const std::string& gone_reason, base::WallTime now) {
    SetFacts(
        vendor, std::move(facts), [&](const device::Facts&) { return gone_reason; }, now);
  }

  /// Sets which device was at which PCI address before this agent started. Before the first
  /// SetFacts.
  void Recall(PciOccupancy occupancy) { occupancy_ = std::move(occupancy); }
  const PciOccupancy& occupancy() const { return occupancy_; }

  /// The time of one that says the same as the one before, as most do, is published with the next
  /// change or by PublishReadTimes.
  void SetReading(const std::string& id, device::Reading reading, base::WallTime now);

  /// After several readings.
  void PublishReadTimes();

  /// `since` is kept where state and reason are unchanged.
  void SetHealth(const std::string& id, device::HealthState state, const std::string& reason,
                 base::WallTime now);

 private:
  Snapshot Copy() const { return *published_.Get(); }
  void Publish(Snapshot next);
  void TakeReadTimes(Snapshot& next);
  void TakePlaces(const std::string& vendor, Snapshot& next, bool& facts_changed);
  static void PlaceParts(const std::string& vendor, Snapshot& next, bool& facts_changed);
  void NumberByAddress(const std::string& vendor, Snapshot& next, bool& facts_changed);
  base::Published<Snapshot> published_;
  std::map<std::string, base::WallTime> read_at_;  // by device: newer than published
  PciOccupancy occupancy_;
  std::map<std::string, std::map<device::PciAddress, int>> numbers_;  // of PCI addresses, by vendor
};

}  // namespace penstock::node::inventory
