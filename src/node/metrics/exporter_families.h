// The families of one vendor's own exporter, as that exporter shows them. Its names, labels and tables are the dialect's.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/node_config.h"
#include "device/dialect.h"
#include "node/metrics/bit_window.h"
#include "node/metrics/exporter_labels.h"
#include "node/metrics/exporter_rows.h"
#include "node/metrics/families.h"
#include "node/metrics/unavailable.h"

namespace penstock::node::metrics {

/// On one thread.
class ExporterFamilies {
 public:
  /// `dialect` has an exporter; it and `config` outlive this. `node`: this machine's name.
  ExporterFamilies(const device::Dialect& dialect, const api::TelemetryConfig& config, const std::string& node);

  /// A device's newest sample, for what is counted over a window.
  void See(const sample::DeviceSample& sample, base::TimePoint now);

  /// What of it these devices do not have.
  std::vector<Unavailable> UnavailableNow(const inventory::Snapshot& inventory, const sample::Snapshot& samples) const {
    return UnavailableOf(dialect_, config_, rows_, inventory, samples);
  }

  /// Who holds what, or what there is, has changed.
  void Relabel(const inventory::Snapshot& inventory, const ledger::Snapshot& ledger);

  /// `devices` are those of the snapshots of the last Relabel.
  void Add(const std::vector<Device>& devices, const Snapshots& node, const Figures& figures, Exposition& page);

 private:
  /// A view with what is known of its device and holder now.
  struct Shown {
    const ExporterView* view;
    const Device* device;
    const usage::HolderUsage* own;  // null: no lease of its own, or nothing is known of it
    std::map<int, std::string>* links;
  };
  bool IsIn(const Shown& shown, const ExporterRow& row, const std::vector<Shown>& all) const;
  void AddRow(const ExporterRow& row, const std::vector<Shown>& all, const Figures& figures, Exposition& page);
  void AddQuantity(const ExporterRow& row, const Shown& shown, Exposition& page);
  void AddFact(const ExporterRow& row, const Shown& shown, Exposition& page);
  void AddLastError(const ExporterRow& row, const Shown& shown, const Figures& figures, Exposition& page);
  void AddErrors(const ExporterRow& row, const Shown& shown, const Figures& figures, Exposition& page);
  void AddErrorTotals(const ExporterRow& row, const Shown& shown, const Figures& figures, Exposition& page);
  void AddReasons(const ExporterRow& row, const Shown& shown, Exposition& page);
  void AddReasonTotals(const ExporterRow& row, const Shown& shown, Exposition& page);
  void AddHealth(const ExporterRow& row, const Shown& shown, const Figures& figures, Exposition& page);
  void AddPeers(const ExporterRow& row, const Shown& shown, const std::vector<Shown>& all, Exposition& page);
  void AddPart(const ExporterRow& row, const Shown& shown, std::string_view part, base::Duration window, std::int64_t value,
               Exposition& page);
  const std::string& LinkText(const ExporterRow& row, const Shown& shown, int link);

  const device::Dialect& dialect_;
  const api::TelemetryConfig& config_;
  const ExporterRows rows_;
  ExporterLook look_;
  std::vector<ExporterView> views_;
  std::vector<std::array<std::map<int, std::string>, 2>> link_texts_;  // of each view, by naming and link
  BitWindow reasons_;
  BitRises rises_;
  const device::Driver* driver_ = nullptr;  // while Add runs
};

}  // namespace penstock::node::metrics
