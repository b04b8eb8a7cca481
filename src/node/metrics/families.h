// Groups of families of the metrics page, each in a file of its own. For press.cc only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "node/metrics/exposition.h"
#include "node/metrics/metrics.h"
#include "node/metrics/unavailable.h"

namespace penstock::node::metrics {

/// A device and the labels that all its series carry.
struct Device {
  const inventory::Entry* entry;
  const sample::DeviceSample* sample;  ///< null: none, or so old that it says nothing of now
  const sample::DeviceSample* asked;   ///< likewise, whatever its age
  std::string_view labels;
};

/// Who has a device, or had it.
struct Holder {
  const usage::HolderUsage* usage;
  std::string_view labels;        ///< of series of the holder on the device
  std::string_view lease_labels;  ///< of those of all that it has
  std::string_view own_labels;    ///< that the holder has by itself: a pod's
  bool first = false;             ///< of its lease
};

/// A process on a device.
struct Process {
  usage::ProcessUsage usage;
  std::string labels;
};

/// A family of what is measured: the quantities that make it, by vendor.
struct Measured {
  std::string_view family;
  struct Part {
    std::string_view vendor;
    device::QuantityId id = 0;
    const device::Quantity* quantity = nullptr;
  };
  std::vector<Part> parts;
};

/// By family, as the catalogue has them. `dialects` outlive it.
std::vector<Measured> MeasuredFamilies(const std::vector<const device::Dialect*>& dialects);

/// Facts, and whether it can be used.
void AddDevices(const std::vector<Device>& devices, const inventory::Snapshot& inventory, Exposition& page);

/// What is measured.
void AddTelemetry(const std::vector<Device>& devices, const std::vector<Measured>& families, Exposition& page);

/// What was heard of devices, how often they changed, what was done about it.
void AddHealth(const std::vector<Device>& devices, const Figures& figures, Exposition& page);

/// Into how many shares devices are cut, who has them, what keeps these apart, and the servers behind them.
void AddSharing(const std::vector<Device>& devices, const Snapshots& node, Exposition& page);

/// Who holds what, and what it uses. `held`: the labels of a series for each slot that somebody has.
void AddHolders(const std::vector<Device>& devices, const std::vector<std::string>& held, const std::vector<Holder>& holders,
                const ledger::Snapshot& ledger, Exposition& page);
void AddProcesses(const std::vector<Process>& processes, Exposition& page);

/// How the collecting does.
void AddCollection(const std::vector<Device>& devices, const Snapshots& node, const Press::DialectOf& dialect_of, base::WallTime now,
                   Exposition& page);

/// Families that were asked for and stay empty.
void AddUnavailable(const std::vector<Unavailable>& unavailable, Exposition& page);

/// Penstock itself.
void AddAgent(const inventory::Snapshot& inventory, const ledger::Snapshot& ledger, const Figures& figures, Exposition& page);

}  // namespace penstock::node::metrics
