// The spine of an agent from discovery to offers: what exists on this node, how it does, and what follows. Looking needs nobody's leave;
// what acts on devices begins with Serve. Construction only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "app/agent/vendor_line.h"
#include "device/actions.h"
#include "device/sharing.h"
#include "node/health/health.h"
#include "node/health/keeper.h"
#include "node/health/kernel_log.h"
#include "node/health/resets.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/sample/sampler.h"
#include "node/share/offers.h"
#include "os/loop.h"

namespace penstock::app {

/// On the control loop.
class Spine {
 public:
  /// `config` is the one that the agent starts with; `worker` is the program that holds vendor libraries. Reads what an agent before us
  /// knew of devices' health, which blocks.
  Spine(os::Loop& control, base::Executor& io, const api::NodeConfig& config, const std::string& worker, node::share::OpenDoors open,
        std::string boot_id);

  /// Hears of devices in the kernel's log, where it can be read: what was written since the agent before us read it, or since the driver
  /// was loaded, and from now on. After Recall. Blocks for as long as it takes to read what is there.
  void ListenToKernel();

  /// Takes over what the agent before this one knew of devices' health. An error where the file cannot be read. Blocks. Once, before Start.
  base::Status Recall();

  /// Begins to look; `first_look` is called once, when each vendor's devices have been looked at, well or not.
  void Start(std::function<void()> first_look);

  /// What a running agent can change follows this configuration from now on.
  void Configure(const api::NodeConfig& config);

  /// This agent serves the node: from now on it also acts on devices (resets, servers through which they are shared), and writes down what
  /// it knows of them.
  void Serve();

  /// Ends what needs not outlive the agent when it goes for good.
  void EndIdle() { servers_->EndIdle(); }

  /// Devices may have come or gone: looks now.
  void LookNow();

  /// Something of one device is not as its last reading says: reads it soon.
  void ReadSoon(std::string_view vendor, const std::string& device);

  std::size_t devices() const { return inventory.published().Get()->devices.size(); }

  /// The vendors' ways to samples. As long as this lives.
  std::vector<node::sample::Sampler::Source> Sources();

  /// Our processes that hold vendor libraries, "worker-nvidia" → pid.
  std::map<std::string, pid_t> Workers() const;

 private:
  const std::unique_ptr<device::SharingService> servers_;  // first: offers follow it

 public:
  // In the order of the spine, which is the order of construction.
  node::inventory::Inventory inventory;
  node::ledger::Ledger ledger;
  node::health::Monitor monitor;
  node::share::Offers offers;

 private:
  void NoteKernelLog();
  void WantServers();
  void LogRemarks(const std::vector<std::string>& remarks);
  node::health::Resets::Vendor VendorFor(std::string_view vendor);

  os::Loop& control_;
  base::Executor& io_;
  const std::string kernel_log_path_, state_dir_, boot_id_;
  std::vector<std::unique_ptr<VendorLine>> lines_;
  std::size_t lines_to_look_ = 0;
  std::unique_ptr<node::health::KernelLogFeed> kernel_log_;
  std::map<std::string, std::unique_ptr<device::Actions>, std::less<>> actions_;  // by vendor
  node::health::KernelLogFeed::Options from_;                                     // where the kernel's log is read from
  std::optional<node::health::Keeper> keeper_;
  std::optional<node::health::Resets> resets_;
  api::ResetPolicy reset_policy_ = api::ResetPolicy::kNever;
  std::vector<device::SharedSet> wanted_;
  std::vector<std::string> remarks_;  // of the wishes, that were logged
  base::Subscription on_offers_, on_ledger_, on_wished_;
};

}  // namespace penstock::app
