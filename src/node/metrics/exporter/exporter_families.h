// Adds the metric families of a vendor's own exporter to the page, in that exporter's format. The
// dialect provides names, labels and tables.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/config/node_config.h"
#include "device/dialect.h"
#include "node/metrics/bit_window.h"
#include "node/metrics/exporter/exporter_labels.h"
#include "node/metrics/exporter/exporter_rows.h"
#include "node/metrics/families.h"
#include "node/metrics/unavailable.h"

namespace penstock::node::metrics {

/// On one thread.
class ExporterFamilies {
 public:
  /// `dialect` must have an exporter; it and `config` must outlive this object. `node`: this
  /// machine's name.
  ExporterFamilies(const device::Dialect& dialect, const api::TelemetryConfig& config,
                   const std::string& node);

  /// Adds a device's newest sample to the counts over a window.
  void AddSample(const sample::DeviceSample& sample, base::TimePoint now);

  /// The configured fields that this node's devices do not have.
  std::vector<Unavailable> UnavailableNow(const inventory::Snapshot& inventory,
                                          const sample::Snapshot& samples) const {
    return UnavailableOf(dialect_, config_, rows_, inventory, samples);
  }

  /// Call when the devices, the leases or the jobs have changed. `jobs` may be null.
  void Relabel(const inventory::Snapshot& inventory, const ledger::Snapshot& ledger,
               const attribute::DeviceJobs* jobs);

  /// `devices` must be those of the snapshots of the last Relabel.
  void Add(const std::vector<DeviceRow>& devices, const Snapshots& node, const PageInputs& inputs,
           Exposition& page);

 private:
  /// A view together with the current data of its device and holder.
  struct Shown {
    const ExporterView* view;
    const DeviceRow* device;
    const DeviceRow* whole;         // of a part; null: it is none
    const usage::HolderUsage* own;  // null: no lease of its own, or no usage is known
    std::map<int, std::string>* links;
  };
  bool IsIn(const Shown& shown, const ExporterRow& row, const std::vector<Shown>& all) const;
  void AddRow(const ExporterRow& row, const std::vector<Shown>& all, const PageInputs& inputs,
              Exposition& page);
  void AddQuantity(const ExporterRow& row, const Shown& shown, Exposition& page);
  bool AddValues(const ExporterRow& row, const Shown& shown, const sample::DeviceSample& sample,
                 Exposition& page);
  void AddFact(const ExporterRow& row, const Shown& shown, Exposition& page);
  void AddLastError(const ExporterRow& row, const Shown& shown, const PageInputs& inputs,
                    Exposition& page);
  void AddErrors(const ExporterRow& row, const Shown& shown, const PageInputs& inputs,
                 Exposition& page);
  void AddErrorTotals(const ExporterRow& row, const Shown& shown, const PageInputs& inputs,
                      Exposition& page);
  void AddReasons(const ExporterRow& row, const Shown& shown, Exposition& page);
  void AddReasonTotals(const ExporterRow& row, const Shown& shown, Exposition& page);
  void AddHealth(const ExporterRow& row, const Shown& shown, const PageInputs& inputs,
                 Exposition& page);
  void AddHealthy(const ExporterRow& row, const Shown& shown, Exposition& page);
  void AddDeviceCount(Exposition& page);
  void AddPeers(const ExporterRow& row, const Shown& shown, const std::vector<Shown>& all,
                Exposition& page);
  void AddPart(const ExporterRow& row, const Shown& shown, std::string_view part,
               base::Duration window, std::int64_t value, Exposition& page);
  const std::string& LinkText(const ExporterRow& row, const Shown& shown, int link);
  std::string_view IndexText(const device::ExporterField& field, int index);

  const device::Dialect& dialect_;
  const api::TelemetryConfig& config_;
  const ExporterRows rows_;
  ExporterSetup setup_;
  std::vector<ExporterView> views_;
  // Of each view, by naming and link.
  std::vector<std::array<std::map<int, std::string>, 2>> link_texts_;
  // Of each field with an index, by index.
  std::map<const device::ExporterField*, std::vector<std::string>> index_texts_;
  std::size_t count_ = 0;  // of devices
  BitWindow reasons_;
  BitRises rises_;
  const device::Driver* driver_ = nullptr;  // valid while Add runs
};

}  // namespace penstock::node::metrics
