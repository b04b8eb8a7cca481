// Reads the runtime's configuration: NVIDIA container toolkit's config.toml (api/config/v1 of the
// toolkit) as existing machines have it, including keys of older versions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::hook::runtime {

/// Levels of messages in the debug file.
enum class RuntimeLogLevel { kDebug, kInfo, kWarn, kError };

struct Config {
  std::string file;  ///< the file that was read, or would be read if it existed

  bool disable_require = false;              ///< disable-require
  std::vector<std::string> swarm_resources;  ///< swarm-resource: variables that replace
                                             ///< NVIDIA_VISIBLE_DEVICES if they are set

  /// accept-nvidia-visible-devices-envvar-when-unprivileged. If not set, unprivileged containers of
  /// Kubernetes may not request devices by environment, since images can set it; users who start
  /// other containers can give them any device anyway.
  std::optional<bool> accept_environment;
  bool accept_mounts = true;  ///< accept-nvidia-visible-devices-as-volume-mounts

  std::vector<std::string> capabilities = {"compat32", "compute", "display", "graphics",
                                           "ngx",      "utility", "video"};

  std::string debug_file;  ///< nvidia-container-runtime.debug; empty: none
  RuntimeLogLevel log_level = RuntimeLogLevel::kInfo;
  std::vector<std::string> runtimes = {"runc", "crun"};
  std::string mode = "auto";
  std::string default_kind = "nvidia.com/gpu";
  std::vector<std::string> annotation_prefixes = {"cdi.k8s.io/"};
  std::vector<std::string> spec_dirs = {"/etc/cdi", "/var/run/cdi"};

  bool cuda_compat =
      true;  ///< features.disable-cuda-compat-lib-hook, modes.legacy.cuda-compat-mode
  bool imex_channels = true;    ///< features.ignore-imex-channel-requests
  bool additional_gids = true;  ///< features.no-additional-gids-for-device-nodes

  std::vector<std::string>
      warnings;  ///< unknown keys with file:line, unsafe options: one line each
  std::vector<std::string> no_effect;  ///< keys that the toolkit uses and this program ignores
};

/// Reads the whole file. kInvalidArgument with file:line:column if it is not TOML, or a value has
/// the wrong type or is not one of the accepted values.
base::Result<Config> ParseConfig(std::string_view text, std::string_view file);

/// Reads only the list of low-level runtimes; returns the default if the file does not set it or is
/// invalid, so that a running container can be stopped whatever the file contains.
std::vector<std::string> ParseRuntimes(std::string_view text);

/// The path of config.toml: NVIDIA_CTK_CONFIG_FILE_PATH, else below XDG_CONFIG_HOME if the file
/// exists there, else below /etc.
std::string FindConfig();

}  // namespace penstock::hook::runtime
