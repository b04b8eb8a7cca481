// Makes the smallest change to a configuration's text. Edits the source by positions, parses the
// result, and requires that the values differ by exactly what was requested. Comments, order, blank
// lines and line ends stay. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "protocol/engine/text/tree.h"

namespace penstock::protocol::engine {

enum class FileFormat {
  kToml,
  kJson,
  kText,  ///< no known format (a template): never edited, only written whole
};

/// Parses the text. kInvalidArgument with file:line:column; an empty text is an empty document.
base::Result<base::Value> Read(FileFormat format, std::string_view text, std::string_view file);

/// Returns the text in which these keys have these values; the same text if they have them already.
/// kFailedPrecondition if a place cannot be edited safely: a key inside an inline table or a list
/// of tables, a scalar in the path, an edit that would change anything else.
base::Result<std::string> Apply(FileFormat format, std::string_view text, std::string_view file,
                                const std::vector<Setting>& settings);

/// Returns the text without these keys, and without those of `tables` that are then empty. Missing
/// keys are no error.
base::Result<std::string> Withdraw(FileFormat format, std::string_view text, std::string_view file,
                                   const std::vector<Path>& keys, const std::vector<Path>& tables);

namespace internal {

// One unverified step each. The path is known to contain no scalars and no lists.
base::Result<std::string> ApplyToml(std::string_view text, const Setting& setting);
base::Result<std::string> ApplyJson(std::string_view text, const Setting& setting);
base::Result<std::string> WithdrawToml(std::string_view text, const Path& key);
base::Result<std::string> WithdrawJson(std::string_view text, const Path& key);
/// Removes the header of a table that has no entries.
base::Result<std::string> WithdrawHeader(std::string_view text, const Path& table);

}  // namespace internal

}  // namespace penstock::protocol::engine
