// Where the tables and keys of a TOML text stand, by byte positions. Finds places, judges no value: what is well-formed is base/toml.h's
// word.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "edge/engine/tree.h"

namespace penstock::edge::engine {

/// A table with a header of its own, [a.b]; the first one is the document itself, which has none.
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
  std::size_t line_begin = 0;  ///< of the line that the key stands in
  std::size_t value_begin = 0, value_end = 0;
  std::size_t line_end = 0;  ///< after the line end behind the value
};

struct TomlLayout {
  std::vector<TomlTable> tables;
  std::vector<TomlEntry> entries;  ///< in the order of the text
  std::string line_end = "\n";     ///< as the text's first line ends
};

/// Of a text that base::ParseToml took. kInternal where the text is not understood here.
base::Result<TomlLayout> LayOut(std::string_view text);

/// Blanks and tabs that a line begins with.
std::string_view Indentation(std::string_view text, std::size_t line_begin);

}  // namespace penstock::edge::engine
