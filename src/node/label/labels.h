// The labels of this node, from facts alone: what its users select on. Writes them nowhere.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/node_config.h"
#include "base/published.h"
#include "node/inventory/inventory.h"
#include "node/share/wish.h"
#include "os/machine_facts.h"

namespace penstock::node::label {

/// Label key → value. Each a valid Kubernetes label.
using LabelSet = std::map<std::string, std::string>;

/// What the labels say beside the devices.
struct Context {
  os::MachineFacts machine;
  std::int64_t timestamp = 0;  ///< seconds since 1970 of the agent's or the configuration's start: gfd.timestamp
  api::LabelsConfig config;
  bool host_features = true;  ///< feature.node.kubernetes.io/* are ours to say
};

/// How devices are shared, by id (share::LabelSharesOf). One that is not there is whole.
using Shares = std::map<std::string, device::LabelShare>;

/// Pure. Without devices and driver of a vendor there are none of its labels but the one that says that its hardware is there. Health
/// changes no label; a device that is gone is not counted. What Kubernetes would refuse is left out, what is too long is cut; both are
/// logged.
LabelSet ComputeLabels(const inventory::Snapshot& inventory, const share::DialectOf& dialect_of, const Context& context,
                       const Shares& shares = {});

/// Follows the inventory's facts and how devices are shared. On the control executor; publishes on it, at once, and only changes. Before
/// the first look at the devices is over (the first Set) nothing is published: a missing label must mean that the device is missing.
class Labels {
 public:
  /// What is wished and which servers there are must outlive this, and follow the inventory since before this did: else a device that comes
  /// would be labelled as whole first.
  Labels(inventory::Inventory& inventory, share::DialectOf dialect_of, base::Published<share::Wished>& wished,
         base::Published<device::SharedDevices>& servers);

  /// The first look is over, or the context is another one now.
  void Set(Context context);

  base::Published<LabelSet>& published() { return published_; }
  bool begun() const { return begun_; }

 private:
  void SharesMayDiffer();
  void Compute(const inventory::Snapshot& snapshot);

  inventory::Inventory& inventory_;
  share::DialectOf dialect_of_;
  base::Published<share::Wished>& wished_;
  base::Published<device::SharedDevices>& servers_;
  Shares shares_;
  Context context_;
  bool begun_ = false;
  std::uint64_t facts_generation_ = 0;  // of what was computed last, with the devices that were gone then
  std::vector<bool> gone_;
  base::Published<LabelSet> published_;
  base::Subscription on_inventory_, on_wished_, on_servers_;
};

}  // namespace penstock::node::label
