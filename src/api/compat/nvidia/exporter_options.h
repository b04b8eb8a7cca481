// Translates the flags, the environment and the YAML configuration (versions 1 and 2) of NVIDIA's
// dcgm-exporter into a NodeConfig. Pure: reads no file and no environment, the caller passes both.
// counters.h parses its file of counters.
//
// Sources: pkg/cmd/app.go and deployment/README.md of dcgm-exporter 4.5.3 to 4.8.4.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/compat/nvidia/device_plugin.h"
#include "api/config/node_config.h"
#include "base/core/result.h"

namespace penstock::api::compat {

/// One setting of the exporter with all its names.
struct ExporterOption {
  std::vector<std::string_view> flags;  ///< "--collectors", "-f"; help shows the first one
  std::string_view environment;         ///< "DCGM_EXPORTER_COLLECTORS"
  std::string_view help;
  bool on_off = false;  ///< true or false; the flag without a value means true
  bool path = false;    ///< the path of a file; a relative path is relative to the working folder
};

/// All options except --config-file, which is the agent's own --config.
const std::vector<ExporterOption>& ExporterOptions();

/// The environment variable that names the exporter's YAML file.
inline constexpr std::string_view kExporterConfigVariable = "DCGM_EXPORTER_CONFIG_FILE";

/// Converts arguments in the spelling of Go's flag packages ("-collectors=x", "-k=false",
/// "-mig-strategy=none") to the agent's spelling. Leaves other arguments unchanged.
std::vector<std::string> FromGoFlags(std::span<const std::string> arguments);

/// Whether these contain --debug.
bool SaysDebug(std::span<const Given> given);

/// Translates the YAML file (empty: none), overridden by `given`, over `base`. Of several values
/// for one flag the last applies, and the others are not checked, as in the exporter. Returns
/// kInvalidArgument with all mistakes at once: in the file with file:line:column, in flags and
/// environment by their names.
base::Result<Translation> TranslateExporter(std::string_view text, std::string_view file,
                                            std::span<const Given> given, const NodeConfig& base);

}  // namespace penstock::api::compat
