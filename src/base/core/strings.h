// Small text helpers that the standard library of g++ 12 lacks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::base {

std::vector<std::string> Split(std::string_view text, char separator);
std::string Join(std::span<const std::string> parts, std::string_view separator);
std::string_view Trim(std::string_view text);
std::string ToLower(std::string_view text);

/// The place of a list's item, for messages: "resources[2]".
std::string Item(std::string_view list, std::size_t index);

/// The folder of a path: "/etc/docker" of "/etc/docker/daemon.json"; a name without a folder
/// unchanged.
std::string FolderOf(std::string_view path);

/// The last part of a path: "daemon.json" of "/etc/docker/daemon.json".
std::string LeafOf(std::string_view path);

/// Parses the whole text as a number: no blanks, no sign but '-', no overflow; otherwise nothing.
std::optional<std::int64_t> ParseInt(std::string_view text, int radix = 10);
std::optional<std::uint64_t> ParseUint(std::string_view text, int radix = 10);

/// Shell-style match of the whole text: '*' and '?'; letters match regardless of case.
bool GlobMatch(std::string_view pattern, std::string_view text);

/// Whether the text is valid UTF-8 (RFC 3629).
bool IsUtf8(std::string_view text);

/// The candidate nearest to the word by edit distance, if it is close enough to be a typo: used for
/// "did you mean".
std::optional<std::string> Nearest(std::string_view word, std::span<const std::string> candidates);

}  // namespace penstock::base
