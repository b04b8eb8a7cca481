// The kubelet's door: offers become device plugins, an Allocate becomes a lease and its edits, pods become holders.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/node_config.h"
#include "api/report.h"
#include "door/kubelet_list.h"
#include "edge/engine/cri/inquiry.h"
#include "edge/kubelet/device_plugin.h"
#include "node/allocate/allocate.h"
#include "node/cdi/keeper.h"
#include "node/share/offers.h"

namespace penstock::door {

/// On the control loop. One device plugin for each resource offered at this door; they come and go with the offers.
class KubeletDoor {
 public:
  struct Options {
    std::string kubelet_dir = "/var/lib/kubelet";
    std::string proc_root = "/proc";
    /// Where a device file ("/dev/nvidia0") lies on this machine.
    std::function<std::string(const std::string&)> host_path;
    /// How devices are named to containers from now on; asked at each Allocate.
    std::function<node::allocate::Consumer()> consumer = [] { return node::allocate::Consumer::kContainer; };
    /// Which share it is advised to take; any thread.
    std::function<api::SharePolicy()> share_policy = [] { return api::SharePolicy::kDistributed; };
    /// How containers are given devices, as it is configured now.
    std::function<api::ContainersConfig()> containers = [] { return api::ContainersConfig(); };
    /// What the kubelet's engine can do; asked again when the kubelet starts. Null: nobody asks. Outlives the door.
    edge::engine::cri::Inquiry* engine = nullptr;
    /// What specifications of ours say; null: none are written here. Outlives the door.
    base::Published<node::cdi::Written>* written = nullptr;
    std::string cdi_folder = "/var/run/cdi";  ///< where they are, as engines call it
    /// How containers are given devices, or what is kept back from them, is reported otherwise than before; on the control loop.
    std::function<void()> containers_differ = [] {};
    /// The kubelet has what was offered last; on the control loop, each time that it was asked and agreed. Nothing of any resource: from
    /// now until then something else is offered, or the kubelet does not read it. Null: it is not asked.
    std::function<void(const KubeletAmounts&)> kubelet_has = nullptr;
  };
  /// `io` reads the kubelet's checkpoint.
  KubeletDoor(os::Loop& control, base::Executor& io, Options options, node::inventory::Inventory& inventory, node::ledger::Ledger& ledger,
              node::share::Offers& offers, node::share::DialectOf dialect_of);
  ~KubeletDoor();

  /// Takes over what an agent before us handed to pods, so that their processes are not taken for strangers until the kubelet has confirmed
  /// them.
  void Recover(const std::vector<node::ledger::Lease>& checkpoint);

  /// Begins to advertise and to ask the kubelet who holds what.
  void Open();

  /// The configuration of containers is another one.
  void ContainersChanged();

  /// Devices that the kubelet is not given, or only as unhealthy, because containers could not be given them yet; with why.
  const std::map<std::string, std::string>& withheld() const;

  /// The devices that the kubelet counts as healthy now, by its own words; none where no kubelet reads our lists. Calls back on the control
  /// loop, not after the destructor; the error is the kubelet's silence.
  void AskCounted(std::function<void(base::Result<std::set<std::string>>)> done);

  /// Somebody waits for pods to give devices back, which nobody reports: the kubelet is asked every second while that is so.
  void AwaitReleases(bool somebody_waits);

  api::DoorReport Report() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::door
