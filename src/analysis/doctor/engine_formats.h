// Tables: the latest CDI version that each release of each container engine reads. Does no I/O.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "protocol/engine/apply/desired_config.h"

namespace penstock::analysis {

/// The number of a release, without suffixes that packagers add.
struct Release {
  int major = 0, minor = 0, patch = 0;
  auto operator<=>(const Release&) const = default;
};

/// Returns the first release number, like "1.7.24", "v2.0" or "1.6.20~ds1", among the words that a
/// program printed; nullopt where there is none.
std::optional<Release> FindRelease(std::string_view text);

/// Formats a release as "1.7.24".
std::string ToString(const Release& release);

/// The latest CDI version that the library in a release supports, from the engines' go.mod and
/// vendor.mod. `latest` is empty where the release reads no CDI. `exact` is false for releases
/// newer than those that the tables cover: they support at least `latest`. FormatsOf returns
/// nullopt for engines without a table.
struct Formats {
  std::string latest;
  bool exact = true;
};
std::optional<Formats> FormatsOf(protocol::engine::Engine engine, const Release& release);

}  // namespace penstock::analysis
