// Explains which devices requests would get now, and why: the choices of Reserve and Prefer, in
// words. Pure; allocates nothing.
#pragma once

#include <vector>

#include "api/config/node_config.h"
#include "api/config_preview.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/share/offer.h"

namespace penstock::node::allocate {

struct ChoiceExplanation {
  std::vector<api::PreviewedDevice>
      devices;  ///< of every offer, in its order, then those that no
                ///< offer has (no allocator, 0 slots, with the reason)
  std::vector<api::PreviewedChoice> choices;  ///< of every offer: for one, two, ... up to all free
                                              ///< devices, and then why there are no more
};

/// Explains each offer separately. Of shares it asks for at most one for each device, and for one
/// where a request may have only one. Choices stop at 32 devices.
ChoiceExplanation Explain(const std::vector<share::Offer>& offers,
                          const share::Assignments& assignments, api::SharePolicy policy,
                          const inventory::Snapshot& inventory, const ledger::Snapshot& ledger);

}  // namespace penstock::node::allocate
