// Declares the groups of families of the metrics page; each group has a file of its own. Only for
// renderer.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "node/metrics/exposition.h"
#include "node/metrics/metrics.h"
#include "node/metrics/unavailable.h"

namespace penstock::node::metrics {

/// A device with the labels of all its series.
struct DeviceRow {
  const inventory::Entry* entry;
  const sample::DeviceSample* sample;  ///< null: none, or too old to describe the present
  const sample::DeviceSample* newest;  ///< the same at any age
  std::string_view labels;
};

/// A current or earlier holder of a device.
struct Holder {
  const usage::HolderUsage* usage;
  std::string_view labels;        ///< of series of the holder on the device
  std::string_view lease_labels;  ///< of series of the whole lease
  std::string_view own_labels;    ///< the holder's own labels: a pod's
  bool first = false;             ///< the first one of its lease
};

/// A process on a device.
struct ProcessRow {
  usage::ProcessUsage usage;
  std::string labels;
};

/// A family of measured values and the quantities that it consists of, by vendor.
struct Measured {
  std::string_view family;
  struct Part {
    std::string_view vendor;
    device::QuantityId id = 0;
    const device::Quantity* quantity = nullptr;
  };
  std::vector<Part> parts;
};

/// In the catalogue's order of families. `dialects` must outlive the result.
std::vector<Measured> MeasuredFamilies(const std::vector<const device::Dialect*>& dialects);

/// Facts and health of the devices.
void AddDevices(const std::vector<DeviceRow>& devices, const inventory::Snapshot& inventory,
                Exposition& page);

/// Measured values.
void AddTelemetry(const std::vector<DeviceRow>& devices, const std::vector<Measured>& families,
                  Exposition& page);

/// Evidence, health transitions and resets.
void AddHealth(const std::vector<DeviceRow>& devices, const PageInputs& inputs, Exposition& page);

/// How devices are shared, which shares are held, their isolation, and the MPS servers.
void AddSharing(const std::vector<DeviceRow>& devices, const Snapshots& node, Exposition& page);

/// Holders and their usage. `held`: the labels of one series for each held slot.
void AddHolders(const std::vector<DeviceRow>& devices, const std::vector<std::string>& held,
                const std::vector<Holder>& holders, const ledger::Snapshot& ledger,
                Exposition& page);
void AddProcesses(const std::vector<ProcessRow>& processes, Exposition& page);

/// How the collection of samples works.
void AddCollection(const std::vector<DeviceRow>& devices, const Snapshots& node,
                   const device::DialectOf& dialect_of, base::WallTime now, Exposition& page);

/// Requested families that stay empty.
void AddUnavailable(const std::vector<Unavailable>& unavailable, Exposition& page);

/// Metrics about Penstock itself.
void AddAgent(const inventory::Snapshot& inventory, const ledger::Snapshot& ledger,
              const PageInputs& inputs, Exposition& page);

}  // namespace penstock::node::metrics
