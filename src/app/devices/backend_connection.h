// Connects one vendor to the inventory: its worker, the discovery of its devices, and watches of
// its driver's files.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/config/node_config.h"
#include "app/devices/driver_root.h"
#include "device/dialect.h"
#include "device/remote.h"
#include "node/health/monitor.h"
#include "node/inventory/discovery.h"
#include "os/watch/watch.h"

namespace penstock::app {

/// The command that runs `worker`, the program, for a vendor, in the format of device::Remote.
std::vector<std::string> WorkerCommand(const std::string& worker, std::string_view vendor,
                                       const device::Paths& paths, bool restricted = false);

/// Whether a worker has anything to look for: kNotFound where the vendor's driver is not on this
/// machine. A vendor that is not there costs no process, and is not mentioned: the error has no
/// message, unless the driver could be anywhere (DriverSign) on a machine without an accelerator of
/// any vendor that is served. Reads sysfs.
base::Status MayStart(const device::Dialect& dialect, const device::Paths& paths);

/// On the control loop.
class BackendConnection {
 public:
  /// Looks at files on `io` later on. Blocks for some system calls.
  BackendConnection(os::Loop& control, base::Executor& io, const api::NodeConfig& config,
                    const std::string& worker, const device::Dialect& dialect,
                    node::inventory::Inventory& inventory, node::health::Monitor& monitor);

  /// `first_look` is called once, after the first look at the devices; `judged` each time after
  /// evidence that waited for its device (see Hear) was processed.
  void Start(
      std::function<void()> first_look, std::function<void()> judged = [] {});

  /// Whether evidence waits for its device to become known.
  bool HasPending() const { return !pending_.empty(); }

  /// Processes evidence of an event that happened `ago` before now, and reads its device soon. If
  /// no devices are known yet, the evidence waits until they are.
  void OnEvidence(const device::Evidence& evidence, base::Duration ago = {});

  /// Devices may have changed: looks now.
  void Refresh() { discovery_.Refresh(); }

  /// This agent changed a device: describes all now.
  void DescribeNow(std::function<void()> done) { discovery_.DescribeNow(std::move(done)); }

  /// The state of this device differs from its last reading: reads it soon.
  void ReadSoon(const std::string& device) { discovery_.ReadSoon(device); }

  /// See inventory::Discovery::session.
  std::optional<std::uint64_t> session() const { return discovery_.session(); }

  /// For a reset: releases the driver, and opens it again.
  void Release(std::function<void()> done) { discovery_.Release(std::move(done)); }
  void Reopen() { discovery_.Reopen(); }

  /// While another program replaces the driver: see inventory::Discovery.
  void GiveUp(const std::string& why, std::function<void()> done) {
    discovery_.GiveUp(why, std::move(done));
  }
  void TakeBack() { discovery_.TakeBack(); }
  /// Whether a worker hangs in a call of the driver, which keeps the driver in use.
  bool hangs() const { return remote_.abandoned() > 0; }

  void SetPoll(base::Duration poll) { discovery_.SetPoll(poll); }

  /// The paths at which the driver is opened now. They change with its root, after which `moved`
  /// is called.
  device::Paths paths() const;
  void OnMove(std::function<void()> moved) { moved_ = std::move(moved); }

  const std::string& vendor() const { return vendor_; }
  const device::Dialect& dialect() const { return dialect_; }
  device::AsyncBackend& backend() { return remote_; }
  pid_t worker_pid() const { return remote_.pid(); }

 private:
  /// Evidence about a device that is not known yet.
  struct Pending {
    device::Evidence evidence;
    base::TimePoint at{};
    base::Duration ago{};
  };
  std::vector<std::string> Command() const;
  std::set<std::string> WatchedPaths() const;
  void WatchPaths();
  void RootChanged(const DriverRoot& before);
  std::shared_ptr<const node::inventory::DriverLocation> Place() const;
  std::string ModuleInstance() const;
  void DriverOpened();
  void ReadFabricOf(const std::string& id);

  os::Loop& control_;
  const device::Dialect& dialect_;
  const std::string vendor_;
  node::inventory::Inventory& inventory_;
  node::health::Monitor& monitor_;
  const api::PathsConfig paths_;  // as configured
  const std::string library_, worker_;
  const bool restricted_;
  DriverRootWatch root_;
  device::Remote remote_;
  node::inventory::Discovery discovery_;
  std::vector<std::unique_ptr<os::PathWatch>> watches_;
  std::deque<Pending> pending_;
  std::set<std::string> evidence_about_;  // devices that were not read since
  base::TimePoint fabric_read_{};
  std::function<void()> judged_, moved_;
  bool started_ = false;
};

}  // namespace penstock::app
