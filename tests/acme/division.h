// How Acme's driver has divided a device, and what it permits. Pure.
#pragma once

#include <string>
#include <vector>

#include "acme/machine.h"
#include "base/core/result.h"
#include "device/backend.h"
#include "device/model.h"

namespace penstock::backend::acme {

/// The mode of devices that can be divided, and its values.
inline constexpr char kCut[] = "cut", kOff[] = "off", kOn[] = "on";

struct Part {
  std::string id;  ///< also its address: that of the device, a dot and a number
  std::string profile;
  std::string parent;  ///< the device, or the part in which it lies
  device::Placement placement;
  bool outer = false;  ///< for parts within it only
};

/// One device, from its lines and those of its division.
class Division {
 public:
  Division(std::string address, Lines device, const Lines& division);

  /// Lines of the division, for Machine::SetDivision.
  Lines Encode() const;

  const std::string& address() const { return address_; }
  const std::vector<Part>& parts() const { return parts_; }
  const Part* Find(const std::string& id) const;
  /// As Facts have them; none where the driver cannot divide the device.
  std::vector<device::Mode> Modes() const;
  const std::vector<device::PartProfile>& profiles() const { return profiles_; }
  const device::PartProfile* FindProfile(const std::string& name) const;

  /// As device::Backend promises it of these calls. What cannot be changes nothing.
  base::Status SetMode(const std::string& mode, const std::string& value);
  base::Result<std::string> Create(const device::NewPart& part);
  base::Status Destroy(const std::string& id);

 private:
  bool IsBusy(const std::string& part) const;
  std::vector<const Part*> PartsIn(const std::string& whole) const;
  base::Result<std::string> WholeFor(const device::PartProfile& profile,
                                     const device::NewPart& part) const;
  base::Result<device::Placement> PlaceFor(const device::PartProfile& profile,
                                           const device::NewPart& part,
                                           const std::string& whole) const;

  const std::string address_;
  const Lines device_;
  std::vector<device::PartProfile> profiles_;
  std::string mode_ = kOff;
  std::int64_t made_ = 0;  // parts so far: none gets the name of an earlier one
  std::vector<Part> parts_;
};

}  // namespace penstock::backend::acme
