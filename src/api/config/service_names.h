// The names of services of the host that are to be stopped while devices are divided, as files of
// other programs list them. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/document.h"

namespace penstock::api {

/// As many services may be listed: each one is stopped and started as root of the host.
inline constexpr std::size_t kMostServices = 32;

/// What keeps a text from being the name of a service of systemd that may be listed, as a clause
/// that follows it; empty: nothing. A name is no path, no pattern, no option and no instance of a
/// template (systemd.unit(5)); mig-parted accepts the same letters.
std::string WhyNoService(std::string_view name);

/// A list of names at `where`, each once, in its order. `suffix` is appended to names without it.
/// Each wrong one, and each beyond kMostServices, is passed to `report` with its place.
using ReportService = std::function<void(base::Mark mark, const std::string& problem)>;
std::vector<std::string> ReadServiceNames(const base::Value& list, const std::string& where,
                                          std::string_view suffix, const ReportService& report);

}  // namespace penstock::api
