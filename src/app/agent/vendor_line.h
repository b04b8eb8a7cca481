// One vendor's way into the inventory: worker, discovery, and the watches that say "look now". Construction only.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/node_config.h"
#include "device/dialect.h"
#include "device/remote.h"
#include "node/health/health.h"
#include "node/inventory/discovery.h"
#include "os/watch.h"

namespace penstock::app {

/// How `worker`, the program, is started for a vendor: device::Remote's command.
std::vector<std::string> WorkerCommand(const std::string& worker, std::string_view vendor, const device::Paths& paths,
                                       bool restricted = false);

/// On the control loop.
class VendorLine {
 public:
  VendorLine(os::Loop& control, const api::NodeConfig& config, const std::string& worker, const device::Dialect& dialect,
             node::inventory::Inventory& inventory, node::health::Monitor& monitor);

  /// `first_look` is called once; `judged` each time that evidence which waited for its device (Hear) was judged.
  void Start(
      std::function<void()> first_look, std::function<void()> judged = [] {});

  /// Whether there is evidence that waits for its device to be known.
  bool HasEarly() const { return !early_.empty(); }

  /// Judges evidence of something that happened so long ago, and looks at its device soon. Where no devices are known yet, once they are.
  void Hear(const device::Evidence& evidence, base::Duration ago = {});

  /// Something about its devices may have changed: looks now.
  void LookNow() { discovery_.Nudge(); }

  /// Something of this device is not as its last reading says: reads it soon.
  void ReadSoon(const std::string& device) { discovery_.ReadSoon(device); }

  /// inventory::Discovery::session.
  std::optional<std::uint64_t> session() const { return discovery_.session(); }

  /// For a reset: lets go of the driver, and opens it again.
  void LetGo(std::function<void()> done) { discovery_.LetGo(std::move(done)); }
  void TakeUp() { discovery_.TakeUp(); }

  void SetPoll(base::Duration poll) { discovery_.SetPoll(poll); }

  const std::string& vendor() const { return vendor_; }
  const device::Dialect& dialect() const { return dialect_; }
  device::AsyncBackend& backend() { return remote_; }
  pid_t worker_pid() const { return remote_.pid(); }

 private:
  /// Evidence of a device that is not known yet.
  struct Early {
    device::Evidence evidence;
    base::TimePoint heard{};
    base::Duration ago{};
  };
  std::string ModuleInstance() const;
  void DriverOpened();

  os::Loop& control_;
  const device::Dialect& dialect_;
  const std::string vendor_;
  node::inventory::Inventory& inventory_;
  node::health::Monitor& monitor_;
  const std::string sysfs_root_;
  const std::vector<std::string> driver_paths_;
  device::Remote remote_;
  node::inventory::Discovery discovery_;
  std::vector<std::unique_ptr<os::PathWatch>> watches_;
  std::deque<Early> early_;
  std::function<void()> judged_;
};

}  // namespace penstock::app
