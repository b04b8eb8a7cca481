// What would follow from a configuration on the devices there are: offers and labels, as values. Changes nothing, tells nobody.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/node_config.h"
#include "api/plan.h"
#include "node/inventory/inventory.h"
#include "node/label/labels.h"
#include "node/ledger/ledger.h"
#include "node/share/wish.h"
#include "os/machine_facts.h"

namespace penstock::door {

/// The node at one moment, as far as a preview needs it.
struct PreviewNode {
  const node::inventory::Snapshot& inventory;
  const node::ledger::Snapshot& ledger;
  node::share::DialectOf dialect_of;
  os::MachineFacts machine;
  std::int64_t timestamp = 0;
  node::share::Moves moves = {};  ///< by hand: DoorMoves::by_hand
  device::SharedDevices servers = {};
  bool kubelet_exists = true;  ///< what `auto` of the kubelet's door asks
  bool nfd = false;            ///< NFD labels this node: what `auto` of labels.hostFeatures asks
};

struct Preview {
  node::share::Wishes wishes;
  std::vector<node::share::Offer> offers;
  node::label::LabelSet labels;
  std::vector<std::string> remarks;  ///< what the configuration says of devices that are not there
};

/// Pure. Labels are shown whether or not a way out is open for them.
Preview MakePreview(const api::NodeConfig& config, const PreviewNode& node);

/// What differs between two, each difference with this effect, and who holds what is touched: slots that go, or are cut or named otherwise.
void AddDifference(const Preview& before, const Preview& after, const node::ledger::Snapshot& ledger, api::Effect effect, api::Plan& plan);

/// The plan from what is in force by way of what would be in force at once to what would be after the next start; its remarks are those of
/// the last, and what those who hold devices now keep from taking effect at once.
api::Plan MakePlan(const api::NodeConfig& now, const api::NodeConfig& at_once, const api::NodeConfig& after_restart,
                   const PreviewNode& node);

}  // namespace penstock::door
