// Builds the calls of the hook program that containers need.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/cdi/spec.h"
#include "device/container.h"
#include "node/cdi/find_links.h"
#include "node/cdi/generate.h"

namespace penstock::node::cdi {

/// Builds the calls of one driver's hooks. The names are those of the hook program, as in existing
/// specifications.
class HookCalls {
 public:
  /// Borrows both.
  HookCalls(const device::ContainerDriver& driver, const Options& options)
      : driver_(driver), options_(options) {}

  /// Nothing where hooks are off, or where this one is disabled or off by default.
  std::optional<api::cdi::Hook> Call(const std::string& name,
                                     const std::vector<std::string>& arguments) const;

  /// Nothing also where there is no link to create.
  std::optional<api::cdi::Hook> CreateLinks(const std::vector<FoundLink>& links) const;

  std::optional<api::cdi::Hook> UpdateCache(const std::vector<std::string>& folders) const;

  /// Makes the folders of device files below /dev accessible to all users.
  std::optional<api::cdi::Hook> OpenFolders(const std::vector<api::cdi::DeviceNode>& nodes) const;

 private:
  bool IsOn(const std::string& name) const;

  const device::ContainerDriver& driver_;
  const Options& options_;
};

inline constexpr const char* kCreateLinks = "create-symlinks";
inline constexpr const char* kUpdateCache = "update-ldcache";
inline constexpr const char* kOpenFolders = "chmod";

}  // namespace penstock::node::cdi
