// Finds the byte positions of tables and keys in a TOML text. Does not judge values: base/toml.h
// decides what is well-formed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "protocol/engine/text/tree.h"

namespace penstock::protocol::engine {

/// A table with its own header, [a.b]; the first one is the document itself, which has no header.
struct TomlTable {
  Path path;
  bool listed = false;         ///< [[a.b]], or below such a table: its path names no single place
  std::size_t begin = 0;       ///< of the header's line
  std::size_t header_end = 0;  ///< after the header's line end
  std::size_t end = 0;         ///< where the next header's line begins, or the text ends
};

/// `key = value` in a table.
struct TomlEntry {
  std::size_t table = 0;       ///< index of its table
  Path path;                   ///< from the document
  std::size_t line_begin = 0;  ///< of the line with the key
  std::size_t value_begin = 0, value_end = 0;
  std::size_t line_end = 0;  ///< after the line end that follows the value
};

struct TomlLayout {
  std::vector<TomlTable> tables;
  std::vector<TomlEntry> entries;  ///< in the order of the text
  std::string line_end = "\n";     ///< the line end of the text's first line
};

/// Lays out a text that base::ParseToml accepted. kInternal if this scanner does not understand it.
base::Result<TomlLayout> LayOut(std::string_view text);

/// Returns the blanks and tabs at the beginning of a line.
std::string_view Indentation(std::string_view text, std::size_t line_begin);

}  // namespace penstock::protocol::engine
