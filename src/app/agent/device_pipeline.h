// Connects the parts between discovery and offers: inventory, ledger, health and offers of this
// node's devices. Observing devices needs no lock; actions on devices start with Serve.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "app/devices/backend_connection.h"
#include "device/actions.h"
#include "device/sharing.h"
#include "node/change/divisions.h"
#include "node/change/resets.h"
#include "node/health/checkpoint_writer.h"
#include "node/health/kernel_log.h"
#include "node/health/monitor.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/sample/sampler.h"
#include "node/share/offers.h"
#include "node/share/turns.h"
#include "os/loop.h"

namespace penstock::app {

/// On the control loop.
class DevicePipeline {
 public:
  /// `config` is the agent's configuration at its start; `worker` is the program that loads vendor
  /// libraries.
  DevicePipeline(os::Loop& control, base::Executor& io, const api::NodeConfig& config,
                 const std::string& worker, node::share::EnabledAllocators enabled,
                 std::string boot_id);

  /// Starts to look for evidence in the kernel's log, if it is readable: in the records that the
  /// previous agent did not read or that were written since the driver was loaded, and in new ones.
  /// Call after Recall. Blocks while it reads the existing records.
  void ListenToKernel();

  /// Restores the previous agent's checkpoint of the devices' health. Returns an error if the file
  /// cannot be read. Blocks. Call once, before Start.
  base::Status Recall();

  /// Starts discovery; `first_look` is called once, when it is done for each vendor, successfully
  /// or not.
  void Start(const std::function<void()>& first_look);

  /// Sets what is called once for each turn of the loop in which the devices changed.
  void OnTurn(node::share::Turns::Follow follow) { follow_ = std::move(follow); }

  /// Applies the settings that can change at run time. `moves`: of Changes::Configure; none in an
  /// agent that makes no changes.
  void Configure(const api::NodeConfig& config, node::share::Moves moves);

  /// Call when this agent serves the node: from now on it also runs sharing servers, and saves its
  /// checkpoint.
  void Serve();

  /// The parts of a vendor that take part in resets of its devices, valid as long as this object.
  node::change::Resets::Vendor ResetsOf(std::string_view vendor);

  /// The parts of a vendor that take part in divisions of its devices, likewise.
  node::change::Divisions::Vendor DivisionsOf(std::string_view vendor);

  /// Lets go of a vendor's driver, because another program replaces it: its devices are gone, and
  /// its idle sharing servers end. `done` gets what of this agent still uses the driver, after 5 s
  /// at the latest; kNotFound: there is no such vendor. Each call with success needs a
  /// TakeDriverBack.
  using Released = std::function<void(const base::Result<std::vector<std::string>>& remaining)>;
  void ReleaseDriver(const std::string& vendor, Released done);
  /// Looks at the driver at once, if no other program still replaces it.
  void TakeDriverBack(const std::string& vendor);

  /// Ends the servers that are not needed after the agent has ended for good.
  void EndIdle();

  /// Devices may have changed: looks now.
  void Refresh();

  /// The state of this device differs from its last reading: reads it soon.
  void ReadSoon(std::string_view vendor, const std::string& device);

  std::size_t devices() const { return inventory.published().Get()->devices.size(); }

  /// The sample sources of all vendors, valid as long as this object.
  std::vector<node::sample::Sampler::Source> Sources();

  /// The agent's processes that load vendor libraries, "worker-nvidia" → pid.
  std::map<std::string, pid_t> Workers() const;

 private:
  // By vendor, of those that have such servers. First: the offers subscribe to them.
  const std::map<std::string, std::unique_ptr<device::SharingService>, std::less<>> servers_;

 public:
  // In the order of the data flow, which is the order of construction.
  node::inventory::Inventory inventory;
  node::ledger::Ledger ledger;
  node::health::Monitor monitor;
  node::share::Offers offers;

 private:
  void FollowRoot(const BackendConnection& connection);
  void NoteKernelLog();
  void Turn(const node::share::NodeDevices& now, const node::share::NodeDevices& before);
  void WantServers();
  BackendConnection* ConnectionOf(std::string_view vendor);
  std::vector<std::string> StillUsing(const BackendConnection& connection) const;
  void LogRemarks(const std::vector<std::string>& remarks);

  os::Loop& control_;
  base::Executor& io_;
  const std::string kernel_log_path_, state_dir_, boot_id_;
  std::vector<std::unique_ptr<BackendConnection>> connections_;
  std::size_t pending_connections_ = 0;
  std::unique_ptr<node::health::KernelLogFeed> kernel_log_;
  std::map<std::string, std::unique_ptr<device::Actions>, std::less<>> actions_;  // by vendor
  node::health::KernelLogFeed::Options from_;  // where to start in the kernel's log
  std::optional<node::health::HealthCheckpointWriter> writer_;
  std::map<std::string, std::vector<device::SharedSet>, std::less<>> wanted_;  // by vendor
  std::vector<std::string> remarks_;  // remarks on the configuration that were logged
  std::map<std::string, int, std::less<>> released_;  // by vendor: how many programs replace it
  bool serves_ = false;
  node::share::Turns::Follow follow_;
  std::optional<node::share::Turns> turns_;  // last: calls all of the above
};

}  // namespace penstock::app
