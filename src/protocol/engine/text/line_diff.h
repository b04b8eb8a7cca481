// Compares texts line by line and shows a change as a diff. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::protocol::engine {

/// Returns the lines of a text, each with its line end.
std::vector<std::string_view> Lines(std::string_view text);

/// Lines [before, before_end) of one text are replaced by [after, after_end) of the other; lines
/// outside of all hunks are the same in both.
struct Hunk {
  std::size_t before = 0, before_end = 0, after = 0, after_end = 0;
};

/// Returns the shortest difference, in order. If the texts differ in thousands of lines, returns
/// one hunk that spans all differences.
std::vector<Hunk> Diff(const std::vector<std::string_view>& before,
                       const std::vector<std::string_view>& after);

/// Returns the difference as `diff -u` prints it; empty if nothing differs. nullopt is a file that
/// does not exist.
std::string Unified(const std::string& path, const std::optional<std::string>& before,
                    const std::optional<std::string>& after);

}  // namespace penstock::protocol::engine
