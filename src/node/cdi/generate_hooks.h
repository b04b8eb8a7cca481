// Steps inside containers, as calls of the hook program.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/cdi/spec.h"
#include "device/container.h"
#include "node/cdi/find_links.h"
#include "node/cdi/generate.h"

namespace penstock::node::cdi {

/// Makes the calls of one driver's steps. The names are the hook program's, as existing specifications have them.
class HookCalls {
 public:
  /// Borrows both.
  HookCalls(const device::ContainerDriver& driver, const Options& options) : driver_(driver), options_(options) {}

  /// Nothing where there are no hooks, or this one is disabled or off by default.
  std::optional<api::cdi::Hook> Call(const std::string& name, const std::vector<std::string>& arguments) const;

  /// Nothing also where there is no link to make.
  std::optional<api::cdi::Hook> CreateLinks(const std::vector<FoundLink>& links) const;

  std::optional<api::cdi::Hook> UpdateCache(const std::vector<std::string>& folders) const;

  /// Opens the folders of device files below /dev to everybody.
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
