// A machine with devices of the made-up vendor Acme, as files that tests and the driver write and
// that the worker reads. Below the driver root:
//   acme/driver           "version=1.0"; without it there is no driver
//   acme/devices/ADDRESS  one device, a line "key=value" for each fact, measured value and fault:
//     id=A-0  model=Acme Large  index=0  pci=0000:07:00.0  numa=0  memory=65536 (MiB)  units=64
//     serial=7 kind=accelerator  parent=A-0  file=/dev/acme0 240 0  link=A-1 4  process=4711 512
//     (MiB) fault=KIND CODE (standing; the code is the severity)  utilization=37 (any quantity's
//     key)
//   acme/divided/ADDRESS  how the driver has divided that device (division.h)
// Devices that name a parent are parts of it that other programs have made; parts may have parts.
// A device that the driver can divide has
//     cut=off,on            the values of its mode
//     profile=1of8 1of2 1 4 0:1,1:1,2:1,3:1 8192 8
//                           a kind of part: its name, that of the parts in which it is made ("-":
//                           on the device), slices, how many there can be, placements, MiB, units
//     process=4711 512      a process on that part
//     says=A-0.2 memory 99999     nonsense: the part reports this fact (memory, parent) instead
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/core/result.h"

namespace penstock::backend::acme {

/// The lines of a file, by key.
using Lines = std::multimap<std::string, std::string>;

/// The value of a key; empty: there is none.
std::string Text(const Lines& lines, const std::string& key);
std::int64_t Number(const Lines& lines, const std::string& key, std::int64_t otherwise = 0);
/// The words of each line of this key.
std::vector<std::vector<std::string>> All(const Lines& lines, const std::string& key);
/// One of the words as a number; 0: it is none.
std::int64_t NumberAt(const std::vector<std::string>& words, std::size_t position);

class Machine {
 public:
  explicit Machine(std::string driver_root);

  /// The driver's version; kNotFound without a driver.
  base::Result<std::string> Version() const;
  base::Result<std::vector<std::string>> Addresses() const;
  base::Result<Lines> Device(const std::string& address) const;

  /// How the device is divided; no lines: never by the driver.
  base::Result<Lines> Division(const std::string& address) const;
  base::Status SetDivision(const std::string& address, const Lines& lines) const;

  /// Removes a device's faults.
  base::Status Cure(const std::string& id) const;

  std::string driver_file() const { return folder_ + "/driver"; }
  std::string devices_folder() const { return folder_ + "/devices"; }

 private:
  std::string divided_folder() const { return folder_ + "/divided"; }
  base::Status Write(const std::string& file, const Lines& lines) const;

  const std::string folder_;
};

}  // namespace penstock::backend::acme
