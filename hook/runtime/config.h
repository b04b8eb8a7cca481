// What an administrator says to the runtime: NVIDIA container toolkit's config.toml as it is on people's machines (api/config/v1 of the
// toolkit), keys of older versions included.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::hook::runtime {

/// How much is told in the debug file.
enum class LogLevel { kDebug, kInfo, kWarn, kError };

struct Config {
  std::string file;  ///< where it was read; where it would be, if there is none

  bool disable_require = false;              ///< disable-require
  std::vector<std::string> swarm_resources;  ///< swarm-resource: variables that count instead of NVIDIA_VISIBLE_DEVICES where they are set

  /// accept-nvidia-visible-devices-envvar-when-unprivileged. Where nobody says it, unprivileged containers of Kubernetes may not ask by
  /// environment, since images do; whoever starts other containers may give them any device anyway.
  std::optional<bool> accept_environment;
  bool accept_mounts = true;  ///< accept-nvidia-visible-devices-as-volume-mounts

  std::vector<std::string> capabilities = {"compat32", "compute", "display", "graphics", "ngx", "utility", "video"};

  std::string debug_file;  ///< nvidia-container-runtime.debug; empty: none
  LogLevel log_level = LogLevel::kInfo;
  std::vector<std::string> runtimes = {"runc", "crun"};
  std::string mode = "auto";
  std::string default_kind = "nvidia.com/gpu";
  std::vector<std::string> annotation_prefixes = {"cdi.k8s.io/"};
  std::vector<std::string> spec_dirs = {"/etc/cdi", "/var/run/cdi"};

  bool cuda_compat = true;      ///< features.disable-cuda-compat-lib-hook, modes.legacy.cuda-compat-mode
  bool imex_channels = true;    ///< features.ignore-imex-channel-requests
  bool additional_gids = true;  ///< features.no-additional-gids-for-device-nodes

  std::vector<std::string> warnings;   ///< unknown keys with file:line, unsafe options: one line each
  std::vector<std::string> no_effect;  ///< keys that mean something to the toolkit and nothing here
};

/// Reads the whole file. kInvalidArgument with file:line:column where it is no TOML, or a value is of another type or none of the possible.
base::Result<Config> ParseConfig(std::string_view text, std::string_view file);

/// Only what is needed to find the low-level runtime; the default where the file does not say it or is broken: a container that runs can
/// be stopped whatever stands in the file.
std::vector<std::string> ParseRuntimes(std::string_view text);

/// Where config.toml is: NVIDIA_CTK_CONFIG_FILE_PATH, else below XDG_CONFIG_HOME if it is there, else below /etc.
std::string FindConfig();

}  // namespace penstock::hook::runtime
