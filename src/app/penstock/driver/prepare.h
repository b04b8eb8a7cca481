// Takes the driver away that a node has, so that a driver container can install its own: what
// k8s-driver-manager does before it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "app/penstock/driver/driver_machine.h"
#include "base/core/clock.h"
#include "base/core/result.h"
#include "device/dialect.h"

namespace penstock::app {

struct DriverPreparation {
  DriverMachine machine;
  node::driver::DriverWanted wanted;
  base::Duration timeout = std::chrono::minutes(5);  ///< for users to let go of the driver
  /// The driver is to work with RDMA: waits for the network cards' driver, which is the host's own,
  /// or that of a driver container.
  bool await_network_driver = false, host_network_driver = false;
};

/// What this program can do to the machine, for tests.
struct DriverActions {
  std::function<base::Status(const std::string& module)> unload;  ///< may block
  std::function<base::TimePoint()> now;
  std::function<void(base::Duration)> sleep;
  std::function<void(const std::string&)> say;    ///< progress, each time something else
  std::function<base::Status()> await_safe_load;  ///< empty: does not wait
};

/// What was done, or would be.
struct DriverPrepared {
  node::driver::Preparation preparation;
  std::vector<std::string> unloaded;  ///< modules
  std::size_t unmounted = 0;
};

/// Decides, and does it. kFailedPrecondition: the node has a driver of its own; kDeadlineExceeded:
/// the driver is in use, the message says by which processes; otherwise errors of the system's
/// calls. May be called again after each of them. Blocks.
base::Result<DriverPrepared> PrepareDriver(const device::Dialect& dialect,
                                           const DriverPreparation& order,
                                           const DriverActions& actions);

/// What keeps the driver from being unloaded now, one sentence; empty: nothing. Blocks.
std::string WhyInUse(const DriverMachine& machine, const device::KernelDriver& driver,
                     const node::driver::UnloadPlan& plan);

/// Calls UnloadKernelModule on a thread of its own: it cannot be interrupted if the module's own
/// code hangs. kDeadlineExceeded: that thread stays.
base::Status UnloadWithin(const std::string& module, base::Duration most);

}  // namespace penstock::app
