// Joins the kubelet to the node: serves one device plugin per resource, answers Allocate with a
// lease and its container edits, and learns from the kubelet which pods hold devices.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "adapter/kubelet/allocatable_confirmation.h"
#include "api/config/node_config.h"
#include "api/report.h"
#include "node/allocate/allocate.h"
#include "node/cdi/spec_writer.h"
#include "node/share/offers.h"
#include "node/share/turns.h"
#include "protocol/engine/cri/engine_watcher.h"
#include "protocol/kubelet/device_plugin.h"

namespace penstock::adapter::kubelet {

/// Use on the control loop. There is one device plugin for each resource offered to the kubelet;
/// plugins are created and ended as the offers change.
class KubeletAdapter {
 public:
  struct Options {
    std::string kubelet_dir = "/var/lib/kubelet";
    std::string proc_root = "/proc";
    /// Called at each Allocate: what gives the paths of its device files ("/dev/nvidia0") on this
    /// machine.
    std::function<std::function<std::string(const std::string&)>()> host_paths;
    /// How devices are named to containers from now on; called at each Allocate.
    std::function<node::allocate::ConsumerKind()> consumer = [] {
      return node::allocate::ConsumerKind::kContainer;
    };
    /// Which share the kubelet is advised to take; called on any thread.
    std::function<api::SharePolicy()> share_policy = [] { return api::SharePolicy::kDistributed; };
    /// How containers get devices, as currently configured.
    std::function<api::ContainersConfig()> containers = [] { return api::ContainersConfig(); };
    /// What the kubelet's engine supports; asked again when the kubelet starts. Null: the engine is
    /// not asked. Outlives the adapter.
    protocol::engine::cri::EngineWatcher* engine = nullptr;
    /// The CDI specifications that we wrote; null: none are written on this node. Outlives the
    /// adapter.
    base::Published<node::cdi::Written>* written = nullptr;
    std::string cdi_folder = "/var/run/cdi";  ///< their folder, as engines see it
    /// Vendors whose devices the kubelet does not get yet, with the reason; ContainersChanged
    /// is called when that has changed.
    std::function<std::map<std::string, std::string>()> waiting = [] {
      return std::map<std::string, std::string>();
    };
    /// The report of how containers get devices, or of what is withheld from them, has changed.
    /// Called on the control loop.
    std::function<void()> containers_differ = [] {};
    /// The kubelet has the last offer. Called on the control loop each time the kubelet was asked
    /// and agreed. An empty map: from now until the next call, another offer is made, or the
    /// kubelet does not read it. Null: the kubelet is not asked.
    std::function<void(const KubeletAmounts&)> kubelet_has = nullptr;
    /// How long the kubelet may take to read a list that it was sent.
    base::Duration list_read_within = std::chrono::seconds(5);
  };
  /// `io` reads the kubelet's checkpoint.
  KubeletAdapter(os::Loop& control, base::Executor& io, Options options,
                 node::inventory::Inventory& inventory, node::ledger::Ledger& ledger,
                 node::share::Offers& offers, device::DialectOf dialect_of);
  ~KubeletAdapter();

  /// Restores what an earlier agent allocated to pods, so that their processes do not count as
  /// outside processes before the kubelet confirms the allocations.
  void Recover(const std::vector<node::ledger::Lease>& checkpoint);

  /// Starts to advertise devices and to ask the kubelet which pods hold them.
  void Open();

  /// Takes the next turn of the devices (share::Turns).
  void Follow(const node::share::NodeDevices& now, const node::share::NodeDevices& before);

  /// The configuration of containers, the engine, the written specifications or the vendors that
  /// wait changed.
  void ContainersChanged();

  /// Devices that are withheld from the kubelet, or shown only as unhealthy, because they cannot be
  /// injected into containers yet; with the reason.
  const std::map<std::string, std::string>& withheld() const;

  /// Passes the devices that the kubelet itself counts as healthy now; none if no kubelet reads our
  /// lists. Calls back on the control loop, not after the destructor; an error means that the
  /// kubelet does not answer, or was not asked yet which pods hold devices.
  void QueryCounted(std::function<void(base::Result<std::set<std::string>>)> done);

  /// While a caller waits for pods to release devices, asks the kubelet every second: releases are
  /// not reported.
  void AwaitReleases(bool has_waiters);

  api::AllocatorReport Report() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::adapter::kubelet
