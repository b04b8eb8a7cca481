// A machine with devices of the made-up vendor Acme, as files that tests write and that the worker
// reads. Below the driver root:
//   acme/driver           "version=1.0"; without it there is no driver
//   acme/devices/ADDRESS  one device, a line "key=value" for each fact, measured value and fault:
//     id=A-0  model=Acme Large  index=0  pci=0000:07:00.0  numa=0  memory=65536 (MiB)  units=64
//     serial=7 kind=accelerator  parent=A-0  file=/dev/acme0 240 0  link=A-1 4  process=4711 512
//     (MiB) fault=KIND CODE (standing; the code is the severity)  utilization=37 (any quantity's
//     key)
// Devices that name a parent are parts of it; parts may have parts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/core/result.h"

namespace penstock::backend::acme {

/// The lines of a file, by key.
using Lines = std::multimap<std::string, std::string>;

class Machine {
 public:
  explicit Machine(std::string driver_root);

  /// The driver's version; kNotFound without a driver.
  base::Result<std::string> Version() const;
  base::Result<std::vector<std::string>> Addresses() const;
  base::Result<Lines> Device(const std::string& address) const;

  /// Removes a device's faults.
  base::Status Cure(const std::string& id) const;

  std::string driver_file() const { return folder_ + "/driver"; }
  std::string devices_folder() const { return folder_ + "/devices"; }

 private:
  const std::string folder_;
};

}  // namespace penstock::backend::acme
