// Texts compared by lines: what a change shows, and how two people's changes of one file are joined. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::edge::engine {

/// The lines of a text, each with its end.
std::vector<std::string_view> Lines(std::string_view text);

/// Lines [before, before_end) of one text stand where [after, after_end) of the other do; what is not in a hunk is the same in both.
struct Hunk {
  std::size_t before = 0, before_end = 0, after = 0, after_end = 0;
};

/// The shortest difference, in order (E. Myers, An O(ND) Difference Algorithm, 1986). Where the texts differ by thousands of lines, one
/// hunk that spans all that differs.
std::vector<Hunk> Diff(const std::vector<std::string_view>& before, const std::vector<std::string_view>& after);

/// As `diff -u` prints it; empty where nothing differs. A file that is not there has no text.
std::string Unified(const std::string& path, const std::optional<std::string>& before, const std::optional<std::string>& after);

/// `base` was changed to `ours` and to `theirs`: both changes in one text, or nothing where they touch the same lines.
std::optional<std::string> Merge(std::string_view base, std::string_view ours, std::string_view theirs);

}  // namespace penstock::edge::engine
