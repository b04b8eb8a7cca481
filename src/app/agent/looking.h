// The looking half of an agent: what exists on this node, how it does, and what follows for the offers. Needs nobody's leave and serves
// nobody. Construction only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "app/agent/vendor_line.h"
#include "node/health/health.h"
#include "node/health/kernel_log.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/share/offers.h"
#include "os/loop.h"

namespace penstock::app {

/// On the control loop.
class Looking {
 public:
  /// `config` is the one that the agent starts with; `worker` is the program that holds vendor libraries.
  Looking(os::Loop& control, const api::NodeConfig& config, const std::string& worker, node::share::OpenDoors open);

  /// Hears of devices in the kernel's log from now on, where it can be read.
  void ListenToKernel();

  /// Begins to look; `first_look` is called once, when each vendor's devices have been looked at, well or not.
  void Start(std::function<void()> first_look);

  /// What a running agent can change follows this configuration from now on.
  void Configure(const api::NodeConfig& config);

  /// Devices may have come or gone: looks now.
  void LookNow();

  std::size_t devices() const { return inventory.published().Get()->devices.size(); }

  /// Our processes that hold vendor libraries, "worker-nvidia" → pid.
  std::map<std::string, pid_t> Workers() const;

  // In the order of the spine, which is the order of construction.
  node::inventory::Inventory inventory;
  node::ledger::Ledger ledger;
  node::health::Monitor monitor;
  node::share::Offers offers;

 private:
  os::Loop& control_;
  const std::string kernel_log_path_;
  std::vector<std::unique_ptr<VendorLine>> lines_;
  std::size_t lines_to_look_ = 0;
  std::unique_ptr<node::health::KernelLogFeed> kernel_log_;
};

}  // namespace penstock::app
