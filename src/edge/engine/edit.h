// The smallest change to a configuration's text: the source is edited by positions, then read again, and the difference of both values must
// be exactly what was asked for. Comments, order, blank lines and line ends stay. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "edge/engine/tree.h"

namespace penstock::edge::engine {

enum class Format {
  kToml,
  kJson,
  kText,  ///< none that is known here (a template): never edited, only written whole
};

/// What the text says. kInvalidArgument with file:line:column; an empty text is an empty document.
base::Result<base::Value> Read(Format format, std::string_view text, std::string_view file);

/// The text in which these keys have these values. The same text where they have them already. kFailedPrecondition where a place cannot be
/// edited safely: a key inside an inline table or a list of tables, a scalar on the way, an edit that would change anything else.
base::Result<std::string> Apply(Format format, std::string_view text, std::string_view file, const std::vector<Setting>& settings);

/// The text without these keys, and without the tables among `tables` that are empty then. Keys that are not there are no error.
base::Result<std::string> Withdraw(Format format, std::string_view text, std::string_view file, const std::vector<Path>& keys,
                                   const std::vector<Path>& tables);

namespace internal {

// One step each, unproved. The path is known to be free of scalars and lists on its way.
base::Result<std::string> ApplyToml(std::string_view text, const Setting& setting);
base::Result<std::string> ApplyJson(std::string_view text, const Setting& setting);
base::Result<std::string> WithdrawToml(std::string_view text, const Path& key);
base::Result<std::string> WithdrawJson(std::string_view text, const Path& key);
/// The header of a table that has no entries.
base::Result<std::string> WithdrawHeader(std::string_view text, const Path& table);

}  // namespace internal

}  // namespace penstock::edge::engine
