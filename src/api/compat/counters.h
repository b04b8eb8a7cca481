// dcgm-exporter's file of counters: rows of FIELD, type, help. Reads no file and knows no field: the caller brings both.
//
// The format is what its reader takes: Go's encoding/csv with '#' for comments, then blanks trimmed off each field
// (internal/pkg/counters/counter_config.go). A file that is taken here is taken there.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/node_config.h"
#include "base/core/result.h"

namespace penstock::api::compat {

/// A field of the exporter, as far as its files have to know it.
struct CounterField {
  std::string_view name;           ///< "DCGM_FI_DEV_SM_CLOCK"
  std::string_view new_name;       ///< under the newer naming; empty: the same
  bool text = false;               ///< its value is a text, which can only be a label
  std::string_view not_to_be_had;  ///< why it cannot be shown here; empty: it can
};

struct Counters {
  std::vector<MetricRow> rows;       ///< fields under CounterField::name, each once
  std::vector<std::string> remarks;  ///< "counters.csv:12: ...", of rows that are well but show nothing, or not what they look like
};

/// The longest text that is read: a ConfigMap holds no longer one.
inline constexpr std::size_t kLongestCounters = 1u << 20;

/// Everything wrong at once (kInvalidArgument), each as "file:line: what; what to do", after twenty of them only that there are more. Of
/// two rows for one field the first counts, which is a remark: one of the exporter's own files has such.
base::Result<Counters> ParseCounters(std::string_view text, std::string_view file, std::span<const CounterField> fields);

/// The same checks for rows that a document has. `where` names a row: "telemetry.counters[2]".
base::Result<Counters> CheckCounters(std::span<const MetricRow> rows, std::string_view where, std::span<const CounterField> fields);

/// Whether a text of unknown kind is such a file: its first line that is no comment has commas and neither begins nor reads as YAML does.
bool LooksLikeCounters(std::string_view text);

}  // namespace penstock::api::compat
