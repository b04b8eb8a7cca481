// Translates the configuration of NVIDIA's device plugin (file of version v1, flags and
// environment) into a NodeConfig. Pure: reads no file and no environment, the caller passes both.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/config/node_config.h"
#include "base/core/document.h"
#include "base/core/result.h"

namespace penstock::api::compat {

/// One setting of the plugin with all its names; from api/config/v1/flags.go and
/// cmd/nvidia-device-plugin/main.go.
struct PluginOption {
  std::vector<std::string_view> flags;        ///< "--nvidia-driver-root"; help shows the first one;
                                              ///< empty: environment only
  std::vector<std::string_view> environment;  ///< "NVIDIA_DRIVER_ROOT"
  std::string_view key;  ///< "flags.nvidiaDriverRoot"; empty if the file has no such key
  std::string_view help;
  bool on_off = false;  ///< true or false; the flag without a value means true
};
const std::vector<PluginOption>& PluginOptions();

/// The translated settings.
struct Translation {
  NodeConfig config;                 ///< `base`, overridden by the translated settings
  std::vector<std::string> not_yet;  ///< requested settings that are not supported yet, one
                                     ///< sentence each that begins with the key's name
  std::vector<std::string> remarks;  ///< settings that are accepted but have no effect here, with
                                     ///< the reason
};

/// Returns the name under which a value is passed: the first flag of the option, or its first
/// variable if it has no flag.
std::string_view NameOf(const PluginOption& option);

/// A value from a flag or the environment: "--mig-strategy" → "single".
struct Given {
  std::string flag;  ///< NameOf(option)
  std::string value;
  std::string where;  ///< for errors: "--mig-strategy", "environment MIG_STRATEGY"
};

/// The kind of a document, recognized by its top keys: Penstock's (apiVersion, kind), the plugin's
/// (version v1, flags, resources, sharing, imex) or dcgm-exporter's (version 1 or 2, metrics,
/// collection; exporter_options.h). An empty document is the plugin's, for which it sets nothing.
enum class Document { kNodeConfig, kDevicePlugin, kExporter };
Document Recognise(std::string_view text);

/// Translates the file (empty: none), overridden by `given`, over `base`. Returns kInvalidArgument
/// with all mistakes at once: in the file with file:line:column and "did you mean", in flags and
/// environment by their names. An empty version means v1, as in the plugin. With lenient reading,
/// the file is read as the plugin reads it: what the plugin ignores is a remark, and only
/// unsupported settings are errors. `base.plugin_files` determines whether settings that the plugin
/// reads and then ignores take effect.
base::Result<Translation> TranslateDevicePlugin(
    std::string_view text, std::string_view file, const std::vector<Given>& given,
    const NodeConfig& base, base::ReadingMode reading = base::ReadingMode::kStrict);

}  // namespace penstock::api::compat
