// What can be divided, a device or a part of it: its profiles, and how much of everything there is
// to divide. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/model.h"

namespace penstock::node::partition {

/// Slices, one bit each, the first is the lowest.
using SliceMask = std::uint64_t;
inline constexpr int kMaxSlices = 64;

/// Whether a placement is within the slices that can be counted. Drivers report what they report.
bool IsPossible(const device::Placement& placement);
/// Of a possible placement.
SliceMask MaskOf(const device::Placement& placement);

/// How many parts of each profile there are or shall be.
using ProfileCounts = std::map<const device::PartProfile*, int>;

class Space {
 public:
  /// A device: the profiles of `all` that are created on the device itself. `all` must outlive it.
  explicit Space(const std::vector<device::PartProfile>& all);
  /// A part of the profile `outer`: those that are created within it.
  Space(const std::vector<device::PartProfile>& all, const device::PartProfile& outer);

  const std::vector<const device::PartProfile*>& profiles() const { return profiles_; }
  const device::PartProfile* Find(std::string_view name) const;

  /// Of compute; 0: unknown.
  int slices() const { return slices_; }
  /// All slices in which its parts can lie.
  SliceMask extent() const { return extent_; }

  /// Why there cannot be so many parts at once, wherever they lie: one clause; empty if there can.
  std::string WhyTooMany(const ProfileCounts& counts) const;

 private:
  void Add(const device::PartProfile& profile);

  std::vector<const device::PartProfile*> profiles_;
  int slices_ = 0;
  SliceMask extent_ = 0;
  std::map<std::string, int, std::less<>> engines_;
};

/// A measure of how many more parts could be created on a space beside others: each placement that
/// is left counts with its slices of compute. Parts of profiles without placements are not counted.
class RoomMeasure {
 public:
  /// Beside so many parts.
  RoomMeasure(const Space& space, ProfileCounts counts);

  /// While those lie in these slices.
  std::int64_t Beside(SliceMask taken) const;

  /// How many placements of each profile are left then; of none: the profile is absent.
  ProfileCounts PlacementsBeside(SliceMask taken) const;

 private:
  struct Place {
    const device::PartProfile* profile = nullptr;
    SliceMask mask = 0;
    int slices = 0;
  };
  std::vector<Place> places_;
};

/// kFailedPrecondition: what the driver reports of its profiles is impossible.
Status CheckProfiles(const std::vector<device::PartProfile>& profiles);

/// "3g.20gb at slices 4-7", "1g.5gb at slice 6".
std::string InWords(std::string_view profile, const std::optional<device::Placement>& placement);

/// "2 of 1g.5gb".
std::string Counted(int count, std::string_view profile);

}  // namespace penstock::node::partition
