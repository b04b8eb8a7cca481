// Previews what would follow from a configuration on the existing devices: offers and labels, as
// values. Changes and publishes nothing.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/config/node_config.h"
#include "api/config_preview.h"
#include "node/inventory/inventory.h"
#include "node/label/labels.h"
#include "node/ledger/ledger.h"
#include "node/share/assignment.h"
#include "os/machine_facts.h"

namespace penstock::view {

/// The parts of the node that a preview needs, at one moment.
struct PreviewNode {
  const node::inventory::Snapshot& inventory;
  const node::ledger::Snapshot& ledger;
  device::DialectOf dialect_of;
  os::MachineFacts machine;
  std::int64_t timestamp = 0;
  node::share::Moves moves = {};  ///< DeviceMoves::manual
  device::SharedDevices servers = {};
  bool kubelet_exists = true;  ///< decides `auto` of the kubelet's allocator
  bool nfd = false;            ///< NFD labels this node: decides `auto` of labels.hostFeatures
};

struct Preview {
  node::share::Assignments assignments;
  std::vector<node::share::Offer> offers;
  node::label::LabelSet labels;
  std::vector<std::string> remarks;  ///< what the configuration says about devices that do not
                                     ///< exist
};

/// Pure. Includes labels even where no output for them is enabled.
Preview MakePreview(const api::NodeConfig& config, const PreviewNode& node);

/// Adds the differences between two previews to that of a configuration, each with this effect and
/// with the holders of the affected slots: slots that disappear, change their shape or are renamed.
void AddDifference(const Preview& before, const Preview& after,
                   const node::ledger::Snapshot& ledger, api::Effect effect,
                   api::ConfigPreview& preview);

/// Compares the configuration in force, what would be in force immediately, and what would be in
/// force after the next start. Its remarks are those of the last one, and those about holders
/// of devices that delay immediate changes.
api::ConfigPreview PreviewConfig(const api::NodeConfig& now, const api::NodeConfig& at_once,
                                 const api::NodeConfig& after_restart, const PreviewNode& node);

}  // namespace penstock::view
