// Parses dcgm-exporter's file of counters: rows of FIELD, type, help. Reads no file and has no
// table of fields: the caller passes both.
//
// The format is the one that dcgm-exporter reads: Go's encoding/csv with '#' for comments, then
// blanks trimmed off each field (internal/pkg/counters/counter_config.go). dcgm-exporter accepts
// every file that this parser accepts.
#pragma once

#include <array>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/config/node_config.h"
#include "base/core/result.h"

namespace penstock::api::compat {

/// A field of the exporter, with the facts that its files require.
struct CounterField {
  std::string_view name;         ///< "DCGM_FI_DEV_SM_CLOCK"
  std::string_view new_name;     ///< name in the newer naming; empty: the same
  bool text = false;             ///< its value is a text, which can only be a label
  std::string_view unavailable;  ///< why it cannot be shown here; empty: it can
};

struct CounterSelection {
  std::vector<MetricRow> rows;       ///< each field once, under CounterField::name
  std::vector<std::string> remarks;  ///< "counters.csv:12: ...", about valid rows that show
                                     ///< nothing, or something else than expected
};

/// Files of dcgm-exporter's image whose content is built into the agent.
inline constexpr std::array<std::string_view, 2> kBuiltInCounters = {
    "/etc/dcgm-exporter/default-counters.csv", "/etc/dcgm-exporter/dcp-metrics-included.csv"};

/// The longest text that is read, which is also the limit of a ConfigMap.
inline constexpr std::size_t kLongestCounters = 1u << 20;

/// Returns kInvalidArgument with all mistakes at once, each as "file:line: what; what to do"; after
/// twenty, one line says that there are more. Of two rows for one field the first applies, with a
/// remark, because one of the exporter's own files contains such rows.
base::Result<CounterSelection> ParseCounters(std::string_view text, std::string_view file,
                                             std::span<const CounterField> fields);

/// Performs the same checks for rows of a document. `where` names a row: "telemetry.counters[2]".
base::Result<CounterSelection> CheckCounters(std::span<const MetricRow> rows,
                                             std::string_view where,
                                             std::span<const CounterField> fields);

/// Whether a text of unknown format is such a file: its first line that is not a comment contains
/// commas, does not begin like YAML and does not parse as YAML.
bool LooksLikeCounters(std::string_view text);

}  // namespace penstock::api::compat
