// Notifies when something changes on the PCI bus, by the kernel's uevents.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "os/loop.h"

namespace penstock::os {

/// Whether a kernel uevent ("add@/devices/pci0000:00/0000:00:1e.0", then KEY=value, each terminated
/// by NUL) reports that a PCI function was added or removed, or that a driver was bound or unbound.
bool IsPciChange(std::string_view message);

/// Calls back on the loop's thread after PCI functions were added, removed, or changed their
/// driver. The callback carries no details: it must read the current state. Bursts within 20 ms
/// become one call. Receives the kernel's uevents (not in a network namespace of another user
/// namespace), and also watches the folder of PCI functions, which suffices if `sysfs_root` is a
/// tree of plain files.
class PciWatch {
 public:
  PciWatch(Loop& loop, const std::string& sysfs_root, std::function<void()> callback);
  ~PciWatch();  ///< on the loop's thread, or after it has stopped
  PciWatch(const PciWatch&) = delete;
  PciWatch& operator=(const PciWatch&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::os
