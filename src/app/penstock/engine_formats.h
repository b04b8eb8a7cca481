// Which version of the CDI format each release of each container engine reads. Pure tables; asks nobody.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "edge/engine/plan.h"

namespace penstock::app {

/// A release's number; what packagers add behind it does not count.
struct Release {
  int major = 0, minor = 0, patch = 0;
  auto operator<=>(const Release&) const = default;
};

/// The first "1.7.24", "v2.0" or "1.6.20~ds1" among the words of a program's own answer; nothing where there is none.
std::optional<Release> FindRelease(std::string_view text);

/// "1.7.24".
std::string ToString(const Release& release);

/// The latest version of the format that the library in this release knows, from the engines' go.mod and vendor.mod. Empty: it reads none.
/// Nothing: not known, as for releases later than those that were looked at; those know the last one in the table at least.
struct Formats {
  std::string latest;
  bool exact = true;
};
std::optional<Formats> FormatsOf(edge::engine::Engine engine, const Release& release);

}  // namespace penstock::app
