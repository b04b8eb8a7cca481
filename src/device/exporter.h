// The metrics that a vendor's own exporter shows, as tables: for pages on which its users find all that they have. Pure; any thread.
#pragma once

#include <cstdint>
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
  kFact,             ///< a text that stays: Exporter::Fact; where it is a number it can be shown as one
  kLastError,        ///< code of the last error of the kind `from`, with labels that tell it
  kErrorsInWindow,   ///< errors of the kind `from` by code, within the window that is set
  kReasonsInWindow,  ///< samples in which each bit of the quantity `from` was set, within the window that is set
  kErrorsTotal,      ///< errors of the kind `from` by code, since the agent started
  kReasonsTotal,     ///< how often each bit of the quantity `from` was set after it was not, since the page is made of this field
  kHealth,           ///< 0 well, 10 warned, 20 not: of the device, and of each of its parts (Exporter::watches)
  kPeers,            ///< how a device reaches each other one
  kNotToBeHad,       ///< exists elsewhere, not here: `from` says why
};

/// A field as the vendor's own exporter shows it. Names, numbers and units are the vendor's, to the letter.
struct ExporterField {
  std::string_view name;      ///< "DCGM_FI_DEV_SM_CLOCK"
  std::string_view new_name;  ///< under the newer naming, "DCGM_FI_DEV_SM_CLOCK_HERTZ"; empty: the same
  int number = 0;             ///< by which the exporter orders its page
  FieldSource source = FieldSource::kQuantity;
  std::string_view from;
  /// The value is that of the quantity divided by this, under the older and the newer naming: 1 and 0.000001 for a clock in MHz. Whole
  /// numbers are divided as such and stay whole.
  double divisor = 1, new_divisor = 1;
  bool real = false, new_real = false;  ///< shown with six decimals, not as a whole number
  bool link = false;                    ///< a series for each link
  int one_link = -1;                    ///< the value of this one of the device's links, as the device's; -1: of none
};

/// A row of the exporter's file of counters: what is shown, as what, with which help.
struct CounterRow {
  std::string field;
  std::string type;  ///< "gauge", "counter", "label"
  std::string help;
  bool operator==(const CounterRow&) const = default;
};

/// How users of the exporter have its labels.
struct ExporterStyle {
  bool old_names = false;                    ///< as before the exporter's last renaming of labels: "uuid", "pod_name"
  bool blanks_replaced = false;              ///< "NVIDIA-A100-SXM4-40GB" for a model's name
  std::string hostname;                      ///< value of the host's label
  std::vector<std::string> hostname_labels;  ///< under which names, in this order: "Hostname", "hostname"; empty: there is none
  bool operator==(const ExporterStyle&) const = default;
};

/// Who holds a device, as far as it is known and wanted. What is empty has no label.
struct ExporterHolder {
  std::string_view pod, namespace_name, container, pod_uid;
  std::string_view share;  ///< number of the share, of a device that has several
};

/// A part of a device whose health is told apart, and what is wrong with it.
struct HealthWatch {
  std::string_view watch;  ///< one of Exporter::watches(); empty: none of them
  std::string_view error;  ///< in the exporter's words; empty: it has no word for it, or nothing is wrong
};

using ExporterLabels = std::vector<std::pair<std::string, std::string>>;

/// The exporter's names, tables and labels.
class Exporter {
 public:
  virtual ~Exporter() = default;

  /// Every field that it knows, by number; also those that are not to be had here, which tell why.
  virtual std::span<const ExporterField> fields() const = 0;

  /// What it shows where no file of counters says anything.
  virtual std::vector<CounterRow> DefaultRows() const = 0;

  /// Of a field of kFact; empty: not known.
  virtual std::string Fact(const ExporterField& field, const Facts& device, const Driver* driver) const = 0;

  /// Of the series of a device, or of one of its links (-1: of none), in the exporter's order, the host's included. `parent` is that of a
  /// partition, else null.
  virtual ExporterLabels LabelsOf(const Facts& device, const Facts* parent, int link, const ExporterStyle& style) const = 0;

  /// Labels of who holds the device, without those that are empty.
  virtual ExporterLabels HolderLabels(const ExporterHolder& holder, const ExporterStyle& style) const = 0;

  /// Labels that tell an error: {"err_code", "79"}, {"err_msg", "GPU has fallen off the bus"}.
  virtual ExporterLabels ErrorLabels(std::int64_t code) const = 0;

  /// Labels that tell apart the series which a field of kErrorsInWindow, kReasonsInWindow, kErrorsTotal, kReasonsTotal or kPeers has of one
  /// device. `part`: the code, the reason's name, the peer's index; empty: the one series that says that nothing happened. `window`: within
  /// which is counted, where it is. `value`: what the series shows.
  virtual ExporterLabels PartLabels(const ExporterField& field, std::string_view part, base::Duration window, std::int64_t value) const = 0;

  /// The parts of a device whose health can be told apart, for fields of kHealth; what else concerns it is told of the device alone.
  virtual std::span<const std::string_view> watches() const = 0;

  /// Which part evidence of this kind and code speaks of, and what the exporter calls the error.
  virtual HealthWatch WatchOf(std::string_view kind, std::int64_t code) const = 0;

  /// What it calls an error that it has no word for.
  virtual std::string_view UnknownError() const = 0;

  /// Labels of a series of kHealth. An empty watch is the whole device, an empty error none.
  virtual ExporterLabels WatchLabels(const HealthWatch& watch) const = 0;

  /// What a field of kPeers shows for a link.
  virtual std::int64_t PeerValue(const Link& link) const = 0;

  /// The names of bits, for fields of kReasonsInWindow and kReasonsTotal.
  virtual std::span<const std::pair<std::uint64_t, std::string_view>> reasons() const = 0;

  /// The newer name of a label of a family, where the newer naming has another; else the same.
  virtual std::string_view NewLabel(std::string_view label) const = 0;
};

}  // namespace penstock::device
