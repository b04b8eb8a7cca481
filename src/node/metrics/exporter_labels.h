// The labels of a device's series under the names of its vendor's own exporter, and of who holds it. Pure; any thread.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/node_config.h"
#include "device/dialect.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"

namespace penstock::node::metrics {

/// Which families have a view: all; those in which a holder has a value of its own; or the others, and of those where no holder's is known.
enum class Shows { kAll, kOwn, kOthers };

/// A device as its series show it; or, where each holder of a shared device has series, as one of them has it. The exporter writes three
/// groups of labels one after the other, the second and the third sorted by name.
struct ExporterView {
  std::shared_ptr<const device::Facts> device, parent;  ///< no parent: it is no partition
  std::string lease;                                    ///< whose own figures stand for the device's; empty: nobody's
  Shows shows = Shows::kAll;
  device::ExporterLabels first;  ///< the device's
  device::ExporterLabels facts;  ///< of rows that are labels, and the pod's own labels
  device::ExporterLabels holder;
  std::array<std::string, 2> texts;  ///< all three, as they are written under the older and the newer naming
};

/// What is the same for all of a vendor's devices.
struct ExporterLook {
  const device::Exporter* exporter = nullptr;
  const api::TelemetryConfig* config = nullptr;
  device::ExporterStyle style;
  std::vector<const device::ExporterField*> rows;  ///< facts that are labels
  device::ExporterLabels reserved;                 ///< names that no pod's label may take
};

/// In the order of the inventory; without devices that are gone.
std::vector<ExporterView> ViewsOf(const ExporterLook& look, std::string_view vendor, const inventory::Snapshot& inventory,
                                  const ledger::Snapshot& ledger);

/// The labels as they are written, with further ones among the facts' and the holder's. `link`: of which link; -1: of none.
std::string TextOf(const ExporterLook& look, const ExporterView& view, bool new_naming, int link, const device::ExporterLabels& more_facts,
                   const device::ExporterLabels& more_holder);

}  // namespace penstock::node::metrics
