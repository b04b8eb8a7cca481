// Splits comma-separated values into records as Go's encoding/csv does (RFC 4180, with Go's
// strictness). Does not interpret the fields. Private to api/compat.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::api::compat::internal {

struct CsvRecord {
  std::size_t line = 0;  ///< of its first line, from 1
  std::vector<std::string> fields;
};

/// Calls `record` for each record; skips lines that begin with '#' and empty lines. For a record
/// that breaks the rules of quotes it calls `wrong` and continues with the next line, where Go's
/// reader stops. Either callback may return false to stop reading.
void ReadCsv(std::string_view text, const std::function<bool(CsvRecord)>& record,
             const std::function<bool(std::size_t line, std::string_view what)>& wrong);

}  // namespace penstock::api::compat::internal
