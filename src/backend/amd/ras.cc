#include "backend/amd/ras.h"

#include "base/core/strings.h"

namespace penstock::backend::amd {

namespace {

/// All ones in 32 bits and more are what registers read as that are not there.
constexpr std::uint64_t kNoCount = 0xffffffff;

}  // namespace

std::optional<RasCounts> ParseRasCounts(std::string_view text) {
  RasCounts counts;
  bool any = false;
  for (const std::string& line : base::Split(text, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const auto value = base::ParseUint(base::Trim(std::string_view(line).substr(colon + 1)));
    if (!value || *value >= kNoCount) continue;
    const std::string_view name = base::Trim(std::string_view(line).substr(0, colon));
    std::uint64_t* count = name == "ue"   ? &counts.uncorrectable
                           : name == "ce" ? &counts.correctable
                           : name == "de" ? &counts.deferred
                                          : nullptr;
    if (count == nullptr) continue;
    *count = *value;
    any = true;
  }
  return any ? std::optional(counts) : std::nullopt;
}

BadPages ParseBadPages(std::string_view text) {
  BadPages pages;
  for (const std::string& line : base::Split(text, '\n')) {
    const auto words = base::Split(line, ':');
    if (words.size() != 3 || !words[0].starts_with("0x")) continue;
    const std::string_view how = base::Trim(words[2]);
    pages.retired += how == "R" ? 1 : 0;
    pages.pending += how == "P" ? 1 : 0;
    pages.failed += how == "F" ? 1 : 0;
  }
  return pages;
}

}  // namespace penstock::backend::amd
