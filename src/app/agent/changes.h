// Constructs what changes devices: the changes themselves with their journal, and the kinds of
// changes that this agent makes. Only the holder of the run directory's lock runs them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "adapter/kubelet/kubelet_adapter.h"
#include "api/config/node_config.h"
#include "app/agent/device_pipeline.h"
#include "node/change/device_changes.h"
#include "node/change/device_moves.h"
#include "node/change/divisions.h"
#include "node/change/driver_reloads.h"
#include "node/change/manual_assignments.h"
#include "node/change/parts_on_demand.h"
#include "node/change/resets.h"

namespace penstock::app {

/// On the control loop.
class Changes {
 public:
  /// What the previous agent left on disk.
  struct Remembered {
    node::change::ManualAssignments moved;
    std::vector<node::change::DeviceChange> under_way;
    std::map<std::string, node::change::AppliedLayout> layouts;  ///< by vendor
    node::change::OnDemandParts on_demand;
  };
  /// Loads it. kUnavailable if a file exists and cannot be read. Blocks.
  static base::Result<Remembered> Remember(const std::string& state_dir,
                                           const std::string& boot_id);

  /// `kubelet`: null where the kubelet gets no devices. Devices of changes that were under way are
  /// withdrawn at once.
  Changes(os::Loop& control, base::Executor& io, DevicePipeline& pipeline,
          adapter::kubelet::KubeletAdapter* kubelet, const node::share::EnabledAllocators& enabled,
          const std::string& state_dir, Remembered remembered, const std::string& boot_id);

  /// Applies a new configuration. Returns what DevicePipeline::Configure takes with it.
  [[nodiscard]] node::share::Moves Configure(const api::NodeConfig& config);

  /// Takes the next turn of the devices.
  void Follow(const node::share::NodeDevices& now, const node::share::NodeDevices& before) {
    changes_.Follow(now, before);
  }

  /// Something else changed for which a step waits.
  void Wake() { changes_.Wake(); }

  /// All devices were read once.
  void Start() { changes_.Start(); }

  node::change::DeviceMoves& moves() { return moves_; }

  /// The divisions of a vendor whose devices can be divided.
  struct OfVendor {
    const device::Dialect* dialect = nullptr;
    std::unique_ptr<node::change::Divisions> divisions;
  };
  const std::vector<OfVendor>& divided() const { return divided_; }
  /// Divisions::Apply on the devices of a vendor; empty: of the one that alone had layouts in the
  /// first releases. kNotFound: the devices of no such vendor can be divided.
  void Divide(const std::string& vendor, const node::change::LayoutRequest& request,
              node::change::Divisions::Progress progress, node::change::Divisions::Done done) const;
  /// Divisions::stops_clients_of, of all vendors.
  std::set<std::string> stops_clients_of() const;
  /// Calls the function each time a vendor's layout was restored, for each after `most` at the
  /// latest.
  void WhenRestored(base::Duration most, const std::function<void()>& restored);
  /// The vendors of which it was not yet: the kubelet gets their devices after that. With the
  /// reason for people, one clause.
  std::map<std::string, std::string> restoring() const;

  node::change::PartsOnDemand& on_demand() { return on_demand_; }

  /// Whether a device or a driver is being changed.
  bool under_way() const { return changes_.any(); }

 private:
  node::change::ReloadNeed ReloadNeedOf(std::string_view vendor) const;

  const node::share::EnabledAllocators enabled_;
  node::change::DeviceChanges changes_;
  node::change::DeviceMoves moves_;
  std::vector<OfVendor> divided_;
  node::change::PartsOnDemand on_demand_;
  node::change::Resets resets_;
  node::change::DriverReloads reloads_;
};

}  // namespace penstock::app
