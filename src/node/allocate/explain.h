// Which devices requests would get now, and why: what Reserve and Prefer choose, told for people. Pure; hands nothing out.
#pragma once

#include <vector>

#include "api/node_config.h"
#include "api/plan.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/share/offer.h"

namespace penstock::node::allocate {

struct Explanation {
  std::vector<api::PlannedDevice> devices;  ///< of every offer, in its order
  std::vector<api::PlannedChoice> choices;  ///< of every offer: for one, two, ... up to all free devices; then why no more
};

/// Each offer by itself. Of shares no more than one for each device is asked for, and one where a request may have one only. Choices stop
/// at 32 devices.
Explanation Explain(const std::vector<share::Offer>& offers, api::SharePolicy policy, const inventory::Snapshot& inventory,
                    const ledger::Snapshot& ledger);

}  // namespace penstock::node::allocate
