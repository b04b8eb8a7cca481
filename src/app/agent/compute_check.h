// Computes once on each free device after its driver was loaded, by a vendor's program that runs in
// a process of its own: a GPU that hangs must not hold the agent.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "api/config/node_config.h"
#include "api/report.h"
#include "base/lifetime.h"
#include "device/dialect.h"
#include "node/inventory/inventory.h"
#include "node/validate/validate.h"
#include "os/loop.h"
#include "os/process/command.h"

namespace penstock::app {

/// Differs after each load of a vendor's driver; empty: it has none.
std::string DriverInstance(const node::inventory::VendorEntry& entry);

/// On the control loop. At rest it does nothing: a device that has computed is not tried again
/// before its driver is loaded again, or the agent starts again.
class ComputeCheck {
 public:
  /// `folder` has the programs. `changed`: facts() have changed.
  ComputeCheck(os::Loop& control, const device::DialectOf& dialect_of, std::string folder,
               std::function<void()> changed);
  ~ComputeCheck();
  ComputeCheck(const ComputeCheck&) = delete;
  ComputeCheck& operator=(const ComputeCheck&) = delete;

  /// With validation.compute off no program is started, and what was found is forgotten. A report
  /// follows each configuration.
  void Configure(const api::NodeConfig& config);

  /// Call with each report while the driver and the device files of the node are usable. Starts the
  /// program for devices that were not tried yet and that are free: no pod, container or process
  /// holds them.
  void Follow(const api::Report& report, const node::inventory::Snapshot& inventory);

  const node::validate::ComputeFacts& facts() const { return facts_; }

 private:
  struct Trial {
    std::unique_ptr<os::Command> command;  ///< null: it has ended
    int failures = 0;
    base::TimePoint again{};  ///< when it is tried again
  };
  struct OfVendor {
    std::string instance;                 ///< of the driver
    std::string root;                     ///< of the driver, as this process sees it
    std::string program;                  ///< its name
    std::map<std::string, Trial> trials;  ///< by device
  };
  void FollowVendor(const device::Dialect& dialect, const node::inventory::VendorEntry& entry,
                    const api::Report& report);
  void Forget(OfVendor& vendor);
  bool MayTry(const OfVendor& vendor, const std::string& device) const;
  std::size_t running() const;
  void Try(const std::string& vendor, const std::string& device);
  void Ended(const std::string& vendor, const std::string& device,
             const base::Result<os::Command::Outcome>& outcome);

  os::Loop& control_;
  const device::DialectOf dialect_of_;
  const std::string folder_;
  const std::function<void()> changed_;
  bool enabled_ = true;
  std::string driver_root_;  // where an entry does not say another
  std::map<std::string, OfVendor> vendors_;
  node::validate::ComputeFacts facts_;
  base::Lifetime lifetime_;
};

}  // namespace penstock::app
