// Computes the labels of a device's series, including its holder's, under the names of the vendor's
// own exporter. Pure; any thread.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/config/node_config.h"
#include "device/dialect.h"
#include "node/attribute/job_files.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"

namespace penstock::node::metrics {

/// Which families have a series for a view: all; those in which a holder has its own value; the
/// other ones, together with those in which no holder's value is known; or, of a device with parts,
/// those of its links, because its parts show the rest.
enum class Shows { kAll, kOwn, kOthers, kLinks };

/// The labels of a device's series or, where each holder of a shared device has series, of one
/// holder's series of the device. As in the vendor's exporter, the text consists of three groups of
/// labels, one after the other, the second and the third sorted by name.
struct ExporterView {
  std::shared_ptr<const device::Facts> device, parent;  ///< no parent: it is not a partition
  std::string lease;  ///< whose own values replace the device's; empty: no lease
  Shows shows = Shows::kAll;
  device::ExporterLabels first;  ///< the device's
  device::ExporterLabels facts;  ///< of rows that are labels, and the labels of the pod
  device::ExporterLabels holder;
  /// All three groups as text, under the older and the newer naming.
  std::array<std::string, 2> texts;
};

/// What all devices of a vendor have in common.
struct ExporterSetup {
  const device::Exporter* exporter = nullptr;
  const api::TelemetryConfig* config = nullptr;
  device::ExporterStyle style;
  std::vector<const device::ExporterField*> rows;  ///< facts that are labels
  device::ExporterLabels reserved;                 ///< names that the label of a pod must not use
};

/// In the order of the inventory, without gone devices. A device with jobs has its views once for
/// each of them. `jobs` may be null.
std::vector<ExporterView> ViewsOf(const ExporterSetup& setup, std::string_view vendor,
                                  const inventory::Snapshot& inventory,
                                  const ledger::Snapshot& ledger,
                                  const attribute::DeviceJobs* jobs);

/// How many devices of a vendor the node has, each part as one.
std::size_t CountDevices(std::string_view vendor, const inventory::Snapshot& inventory);

/// The value of a fact of a device, for a part otherwise that of its device; empty: unknown.
std::string FactOf(const device::Exporter& exporter, const device::ExporterField& field,
                   const device::Facts& device, const device::Facts* parent,
                   const device::Driver* driver);

/// The labels as text, with further ones in the groups `facts` and `holder`. `link`: number of the
/// link, or -1.
std::string TextOf(const ExporterSetup& setup, const ExporterView& view, bool new_naming, int link,
                   const device::ExporterLabels& more_facts,
                   const device::ExporterLabels& more_holder);

}  // namespace penstock::node::metrics
