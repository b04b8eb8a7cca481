// The programs of vendors that divide a node's devices as labels of its Node ask, and in whose
// place the agent does: which keys of the configuration name their users' files, and how these are
// read. Pure tables.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/compat/amd/dcm_profiles.h"
#include "api/compat/nvidia/deploy_labels.h"
#include "api/compat/nvidia/mig_parted.h"
#include "api/config/layouts.h"
#include "api/config/node_config.h"
#include "base/core/result.h"

namespace penstock::api::compat {

/// A user's file of layouts.
struct LayoutFile {
  Layouts layouts;                            ///< those that are in order
  std::map<std::string, WrongProfile> wrong;  ///< the others, by name
  std::vector<std::string> remarks;           ///< what is read and has no effect
};

struct LayoutProgram {
  std::string_view name;
  std::string NodeConfig::*layouts;     ///< path of the file of layouts
  std::string NodeConfig::*by_default;  ///< name of the layout of nodes without the label; null:
                                        ///< its users have no such setting
  std::string NodeConfig::*services;    ///< path of the file that lists services of the host
  bool NodeServices::*service;          ///< whether labels leave it on; null: none switches it off
  /// kInvalidArgument: the file as a whole is wrong, with all problems.
  Result<LayoutFile> (*read)(std::string_view text, std::string_view file,
                             const ProfileNameReader& read_profile);
  /// The services that are stopped while they hold a device that is divided, in their order.
  Result<std::vector<std::string>> (*read_services)(std::string_view text, std::string_view file);
};

std::span<const LayoutProgram* const> LayoutPrograms();

/// Null: there is none of this name.
const LayoutProgram* FindLayoutProgram(std::string_view name);

}  // namespace penstock::api::compat
