// The reference model: how much of each physical device is held, and by whom. It knows nothing of
// leases, offers, allocators and changes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "device/model.h"

namespace penstock::capacity {

inline constexpr int kSlices = 4;  ///< of each device
inline constexpr int kUnits = 12;  ///< of each slice, so that it has a half, a third and a quarter

/// What a holder has of one device: as many units of each of these slices.
struct Claim {
  std::size_t device = 0;
  device::Placement slices;
  int units = kUnits;
};

class Model {
 public:
  explicit Model(std::size_t devices) : devices_(devices) {}

  void Take(const std::string& holder, const std::vector<Claim>& claims) {
    std::vector<Claim>& held = holders_[holder];
    held.insert(held.end(), claims.begin(), claims.end());
  }
  void Give(const std::string& holder) { holders_.erase(holder); }

  /// The holders of these slices.
  std::set<std::string> HoldersOf(std::size_t device, const device::Placement& slices) const {
    std::set<std::string> names;
    for (const auto& [name, claims] : holders_)
      for (const Claim& claim : claims)
        if (claim.device == device && claim.slices.start < slices.start + slices.size &&
            slices.start < claim.slices.start + claim.slices.size)
          names.insert(name);
    return names;
  }

  /// Which slice is held more than once; empty: none.
  std::string Overcommitted() const {
    for (std::size_t device = 0; device < devices_; ++device)
      for (int slice = 0; slice < kSlices; ++slice)
        if (const int held = UnitsOf(device, slice); held > kUnits)
          return "of slice " + std::to_string(slice) + " of device " + std::to_string(device) +
                 ", " + std::to_string(held) + " of " + std::to_string(kUnits) + " units are held";
    return "";
  }

  /// The units of a device that no one holds.
  int FreeOf(std::size_t device) const {
    int free = kSlices * kUnits;
    for (int slice = 0; slice < kSlices; ++slice) free -= UnitsOf(device, slice);
    return free;
  }

 private:
  int UnitsOf(std::size_t device, int slice) const {
    int units = 0;
    for (const auto& [name, claims] : holders_)
      for (const Claim& claim : claims)
        if (claim.device == device && claim.slices.start <= slice &&
            slice < claim.slices.start + claim.slices.size)
          units += claim.units;
    return units;
  }

  std::size_t devices_;
  std::map<std::string, std::vector<Claim>> holders_;
};

}  // namespace penstock::capacity
