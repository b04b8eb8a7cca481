// Tells when something changes on the PCI bus, by the kernel's uevents. Knows no device.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "os/loop.h"

namespace penstock::os {

/// Whether a kernel uevent ("add@/devices/pci0000:00/0000:00:1e.0", then KEY=value, each with a NUL behind) says that a PCI function came
/// or went, or a driver took it or let it go.
bool IsPciChange(std::string_view message);

/// Calls back on the loop's thread after PCI functions came, went, or changed their driver; level-triggered by meaning: the callback looks
/// for itself. Bursts within 20 ms become one call. Hears the kernel's uevents (not in a network namespace of another user namespace), and
/// besides watches the folder of functions, which is enough where `sysfs_root` is a tree of plain files.
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
