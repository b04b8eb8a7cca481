// Computes the labels of this node from facts about its hardware and software. Writes them nowhere.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "api/config/node_config.h"
#include "base/published.h"
#include "node/inventory/inventory.h"
#include "node/share/turns.h"
#include "os/machine_facts.h"

namespace penstock::node::label {

/// Label key → value. All are valid Kubernetes labels.
using LabelSet = std::map<std::string, std::string>;

/// Inputs of the labels other than the devices.
struct LabelContext {
  os::MachineFacts machine;
  /// When the agent started or its configuration took effect, in seconds since 1970: gfd.timestamp.
  std::int64_t timestamp = 0;
  api::LabelsConfig config;
  api::PartsStrategy parts = api::PartsStrategy::kDefault;           ///< NodeConfig::parts
  api::PartsStrategy profiled_parts = api::PartsStrategy::kDefault;  ///< likewise
  bool host_features = true;      ///< this agent publishes feature.node.kubernetes.io/*
  bool feature_discovery = true;  ///< ... and what GPU Feature Discovery does, all other labels
};

/// How devices are shared, by device id (share::LabelSharesOf). A device that is missing here is
/// whole.
using LabelShares = std::map<std::string, device::LabelShare>;

/// Pure. A vendor without devices and driver gets only the label that says that its hardware is
/// present. Health changes no label; a gone device is not counted. Labels that Kubernetes would
/// reject are dropped, values that are too long are cut; both are logged.
LabelSet ComputeLabels(const inventory::Snapshot& inventory, const device::DialectOf& dialect_of,
                       const LabelContext& context, const LabelShares& shares = {});

/// The labels follow from the inventory's facts and from how devices are shared. On the control
/// executor; publishes on it, at once, and only changes. Publishes nothing before the first call of
/// Set, which follows the first reading of the devices: a missing label must mean that the device
/// is missing.
class Labels {
 public:
  explicit Labels(device::DialectOf dialect_of) : dialect_of_(std::move(dialect_of)) {}

  /// Call when the first reading of all devices is over, and whenever the context changes; then
  /// Update.
  void Set(LabelContext context);

  /// Publishes the labels of the devices as they are now. Needs inventory, assignments and servers.
  void Update(const share::NodeDevices& now);

  base::Published<LabelSet>& published() { return published_; }
  bool begun() const { return begun_; }

 private:
  bool Differs(const share::NodeDevices& now);
  bool SharesDiffer(const share::NodeDevices& now);

  const device::DialectOf dialect_of_;
  LabelShares shares_;
  LabelContext context_;
  bool begun_ = false, context_differs_ = false;
  // The facts and the gone devices of the last computation.
  std::uint64_t facts_generation_ = 0;
  std::vector<bool> gone_;
  std::shared_ptr<const share::DesiredAssignments> desired_;
  std::shared_ptr<const device::SharedDevices> servers_;
  base::Published<LabelSet> published_;
};

}  // namespace penstock::node::label
