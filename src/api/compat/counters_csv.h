// Records of comma-separated values as Go's encoding/csv reads them (RFC 4180 with its strictness). Knows no meaning. Private to
// api/compat.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::api::compat::internal {

struct CsvRecord {
  std::size_t line = 0;  ///< of its beginning, from 1
  std::vector<std::string> fields;
};

/// Goes through all records; lines that begin with '#' and empty lines are none. A record that breaks the rules of quotes is told to
/// `wrong`, and reading goes on with the next line, where Go's reader stops. Both may answer false to end it.
void ReadCsv(std::string_view text, const std::function<bool(CsvRecord)>& record,
             const std::function<bool(std::size_t line, std::string_view what)>& wrong);

}  // namespace penstock::api::compat::internal
