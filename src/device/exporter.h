// The metrics of a vendor's own exporter, as tables: for metrics pages that are compatible with it.
// Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "device/model.h"

namespace penstock::device {

/// Where the value of a field of a vendor's own exporter comes from.
enum class FieldSource {
  kQuantity,         ///< `from` is a quantity's key
  kFact,             ///< a constant text: Exporter::Fact; may be shown as a number if it is one
  kLastError,        ///< code of the last error of the kind `from`, with labels that describe it
  kErrorsInWindow,   ///< errors of the kind `from` by code, within the configured window
  kReasonsInWindow,  ///< samples in which each bit of the quantity `from` was set, within the
                     ///< configured window
  kErrorsTotal,      ///< errors of the kind `from` by code, since the agent started
  kReasonsTotal,     ///< how often each bit of the quantity `from` changed from clear to set, since
                     ///< the page first had this field
  kHealth,       ///< 0 healthy, 10 warning, 20 unhealthy: of the device and of each of its parts
                 ///< (Exporter::watches)
  kHealthy,      ///< 1 healthy, 0 unhealthy: of the device; nothing where that is unknown
  kDevices,      ///< how many devices of the vendor the node has, each part as one; one series,
                 ///< whose labels are those of the node
  kPeers,        ///< how the device reaches each of the others
  kUnavailable,  ///< the exporter has it, Penstock does not: `from` says why
};

/// A field as the vendor's own exporter shows it. Names, numbers and units are exactly the
/// vendor's.
struct ExporterField {
  std::string_view name;  ///< "DCGM_FI_DEV_SM_CLOCK"
  std::string_view
      new_name;    ///< in the newer naming, "DCGM_FI_DEV_SM_CLOCK_HERTZ"; empty: the same
  int number = 0;  ///< the exporter orders its page by it
  FieldSource source = FieldSource::kQuantity;
  std::string_view from;
  /// The shown value is the quantity divided by this, in the older and the newer naming: 1 and
  /// 0.000001 for a clock in MHz. Integers are divided as integers and stay integers.
  double divisor = 1, new_divisor = 1;
  bool real = false, new_real = false;  ///< shown with six decimals, not as an integer
  bool link = false;                    ///< one series per link
  int one_link = -1;  ///< shows the value of this link as the device's value; -1: of no single link
  bool index = false;  ///< one series per numbered part of the chip (an engine, a sensor), whose
                       ///< number is the link's; Exporter::PartLabels names it
};

/// A row of the exporter's counters file: which field is shown, as which type, with which help.
struct CounterRow {
  std::string field;
  std::string type;  ///< "gauge", "counter", "label"
  std::string help;
  bool operator==(const CounterRow&) const = default;
};

/// How the exporter's users configured its labels.
struct ExporterStyle {
  bool old_names = false;        ///< label names from before the exporter's last renaming: "uuid",
                                 ///< "pod_name"
  bool blanks_replaced = false;  ///< blanks in model names are replaced: "NVIDIA-A100-SXM4-40GB"
  std::string hostname;          ///< value of the host label
  std::vector<std::string> hostname_labels;  ///< names of the host label, in this order:
                                             ///< "Hostname", "hostname"; empty: no host label
  bool operator==(const ExporterStyle&) const = default;
};

/// The holder of a device, as far as it is known and requested. An empty member gets no label.
struct ExporterHolder {
  std::string_view pod, namespace_name, container, pod_uid;
  std::string_view share;  ///< number of the share, if the device has several
  std::string_view job;    ///< of a workload manager
};

/// A part of a device whose health is shown separately, and its fault.
struct HealthWatch {
  std::string_view watch;  ///< one of Exporter::watches(); empty: none of them
  std::string_view
      error;  ///< in the exporter's words; empty: no fault, or the exporter has no word for it
};

using ExporterLabels = std::vector<std::pair<std::string, std::string>>;

/// The names, tables and labels of one vendor's exporter.
class Exporter {
 public:
  virtual ~Exporter() = default;

  /// All fields that the exporter knows, by number, including the unavailable ones, which say why.
  virtual std::span<const ExporterField> fields() const = 0;

  /// The rows that it shows without a counters file.
  virtual std::vector<CounterRow> DefaultRows() const = 0;

  /// The value of a field of kFact; empty if unknown.
  virtual std::string Fact(const ExporterField& field, const Facts& device,
                           const Driver* driver) const = 0;

  /// The labels of a device's series or of one of its links (-1: of no link), in the exporter's
  /// order, including the host label. `whole` is the device that a partition belongs to, otherwise
  /// null. A partition has a profile (Facts::profile).
  virtual ExporterLabels LabelsOf(const Facts& device, const Facts* whole, int link,
                                  const ExporterStyle& style) const = 0;

  /// Whether this part of a device shows the value that the field has for the device, if it has
  /// none of its own. The device itself is then not shown, except for its links.
  virtual bool IsOfWhole(const ExporterField& field, const Facts& part) const = 0;

  /// The labels of a device's holder, without empty ones.
  virtual ExporterLabels HolderLabels(const ExporterHolder& holder,
                                      const ExporterStyle& style) const = 0;

  /// The name of the file that lists a device's jobs; empty: it has none. `whole`: see LabelsOf.
  virtual std::string JobFile(const Facts& device, const Facts* whole) const = 0;

  /// The labels that describe an error: {"err_code", "79"}, {"err_msg", "GPU has fallen off the
  /// bus"}.
  virtual ExporterLabels ErrorLabels(std::int64_t code) const = 0;

  /// The labels that distinguish one device's series of a field of kErrorsInWindow,
  /// kReasonsInWindow, kErrorsTotal, kReasonsTotal or kPeers, or of one with an index. `part` is
  /// the code, the reason's name, the peer's index or the number; empty for the one series that
  /// says that nothing happened. `window` is the counting window, for fields that have one. `value`
  /// is the value of the series.
  virtual ExporterLabels PartLabels(const ExporterField& field, std::string_view part,
                                    base::Duration window, std::int64_t value) const = 0;

  /// The parts of a device whose health is shown separately by fields of kHealth. All other faults
  /// are shown for the device alone.
  virtual std::span<const std::string_view> watches() const = 0;

  /// The part that evidence of this kind and code concerns, and the exporter's name of the error.
  virtual HealthWatch WatchOf(std::string_view kind, std::int64_t code) const = 0;

  /// The exporter's name for an error that it has no word for.
  virtual std::string_view UnknownError() const = 0;

  /// The labels of a series of kHealth. An empty watch means the whole device, an empty error no
  /// error.
  virtual ExporterLabels WatchLabels(const HealthWatch& watch) const = 0;

  /// The value of a field of kPeers for a link.
  virtual std::int64_t PeerValue(const Link& link) const = 0;

  /// The names of the bits, for fields of kReasonsInWindow and kReasonsTotal.
  virtual std::span<const std::pair<std::uint64_t, std::string_view>> reasons() const = 0;

  /// The name of a family's label in the newer naming; the same name if it did not change.
  virtual std::string_view NewLabel(std::string_view label) const = 0;

  /// The labels of series of the node (FieldSource::kDevices).
  virtual ExporterLabels NodeLabels(const ExporterStyle&) const { return {}; }

  /// Whether it has a file of settings besides the counters file (telemetry.exporterFile), which
  /// then applies to its families.
  virtual bool has_settings() const { return false; }

  /// The number by which its settings choose a device; nothing: it has none.
  virtual std::optional<int> NumberOf(const Facts&) const { return std::nullopt; }
};

}  // namespace penstock::device
