// What exists on this node and how it does, as one published snapshot. Decides nothing about use.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/published.h"
#include "device/model.h"
#include "node/inventory/slots.h"

namespace penstock::node::inventory {

/// A device as it stands now.
struct Entry {
  std::shared_ptr<const device::Facts> facts;
  device::Health health;
  std::shared_ptr<const device::Reading> reading;  ///< last one; null before the first
  base::WallTime read_at{};                        ///< of the last one, also after the device was gone; the epoch before the first
  std::string replaced;                            ///< what device it took the place of, one sentence; empty: none that is known
  std::string replaced_id;                         ///< id of that one
  int number = -1;                                 ///< by which rules mean it, or what is in its place; negative: none
};

/// A vendor's driver as it stands now.
struct VendorEntry {
  std::string vendor;
  std::shared_ptr<const device::Driver> driver;  ///< null while there is none
  std::string reason;                            ///< why there is none: one sentence that says what to do
};

/// All devices at one moment, ordered by vendor and index, those without one last. A change of health or of a reading leaves
/// facts_generation alone, so that nothing that follows from facts is computed again.
struct Snapshot {
  std::uint64_t facts_generation = 0;
  std::uint64_t state_generation = 0;
  std::vector<VendorEntry> vendors;
  std::vector<Entry> devices;

  const Entry* Find(std::string_view id) const;
  const VendorEntry* FindVendor(std::string_view vendor) const;
};

/// Keeps the snapshot. Setters on the control executor; each publishes once, and only where something changed.
class Inventory {
 public:
  const base::Published<Snapshot>& published() const { return published_; }
  base::Published<Snapshot>& published() { return published_; }

  void SetVendor(VendorEntry vendor);

  /// All devices of a vendor that exist now. One that was known and is not among them stays, with health kGone, the reason given and no
  /// index, until another one sits at its PCI address. The driver numbers anew what it still sees: an entry's `number` is the index that
  /// its place had when all devices that are known were there.
  void SetFacts(const std::string& vendor, std::vector<device::Facts> facts, const std::string& gone_reason, base::WallTime now);

  /// Who sat where before this agent began. Before the first SetFacts.
  void Recall(Slots slots) { slots_ = std::move(slots); }
  const Slots& slots() const { return slots_; }

  void SetReading(const std::string& id, device::Reading reading, base::WallTime now);

  /// `since` is kept where state and reason stay as they are.
  void SetHealth(const std::string& id, device::HealthState state, const std::string& reason, base::WallTime now);

 private:
  Snapshot Copy() const { return *published_.Get(); }
  void TakePlaces(const std::string& vendor, Snapshot& next, bool& facts_changed);
  void NumberPlaces(const std::string& vendor, Snapshot& next, bool& facts_changed);
  base::Published<Snapshot> published_;
  Slots slots_;
  std::map<std::string, std::map<device::PciAddress, int>> numbers_;  // of places, by vendor
};

}  // namespace penstock::node::inventory
