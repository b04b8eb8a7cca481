// NVIDIA's device plugin: its configuration file (version v1), flags and environment, as a pure translation into NodeConfig. Reads no file
// and no environment: the caller brings both.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/node_config.h"
#include "base/core/document.h"
#include "base/core/result.h"

namespace penstock::api::compat {

/// One setting of the plugin under all its names; from api/config/v1/flags.go and cmd/nvidia-device-plugin/main.go.
struct PluginOption {
  std::vector<std::string_view> flags;        ///< "--nvidia-driver-root"; the first is the one that help shows; none: environment only
  std::vector<std::string_view> environment;  ///< "NVIDIA_DRIVER_ROOT"
  std::string_view key;                       ///< "flags.nvidiaDriverRoot"; empty where the file has none
  std::string_view help;
  bool on_off = false;  ///< true or false; as a flag alone it means true
};
const std::vector<PluginOption>& PluginOptions();

/// What was said, translated.
struct Translation {
  NodeConfig config;                 ///< the base with what was said on top
  std::vector<std::string> not_yet;  ///< asked for and not to be had yet, one sentence each that begins with the key's name
  std::vector<std::string> remarks;  ///< accepted and without effect here, with why
};

/// Under what a value is given: the first of its flags, or of its variables where it has no flag.
std::string_view NameOf(const PluginOption& option);

/// A value given by a flag or the environment: "--mig-strategy" → "single".
struct Given {
  std::string flag;  ///< NameOf(option)
  std::string value;
  std::string where;  ///< for errors: "--mig-strategy", "environment MIG_STRATEGY"
};

/// What a document is, by its top keys: ours (apiVersion, kind), the plugin's (version v1, flags, resources, sharing, imex) or
/// dcgm-exporter's (version 1 or 2, metrics, collection; exporter_options.h). An empty one is the plugin's, to which it means that nothing
/// was said.
enum class Document { kNodeConfig, kDevicePlugin, kExporter };
Document Recognise(std::string_view text);

/// The file (empty: none), then what was given on top of it, over `base`. Everything wrong at once (kInvalidArgument): in the file with
/// file:line:column and "did you mean", in flags and environment by their names. An empty version means v1, as it does to the plugin.
/// Under a lenient reading the file is read as the plugin reads it: what it passes over is a remark here, and only what cannot be honoured
/// is an error. `base.plugin_files` says whether what the plugin reads and then ignores counts.
base::Result<Translation> TranslateDevicePlugin(std::string_view text, std::string_view file, const std::vector<Given>& given,
                                                const NodeConfig& base, base::Reading reading = base::Reading::kStrict);

}  // namespace penstock::api::compat
