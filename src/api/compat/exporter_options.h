// NVIDIA's dcgm-exporter: its flags, its environment and its YAML configuration (version 1 and 2), as a pure translation into NodeConfig.
// Reads no file and no environment: the caller brings both. Its file of counters is counters.h.
//
// Sources: pkg/cmd/app.go and deployment/README.md of dcgm-exporter 4.5.3 to 4.8.4.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/compat/device_plugin.h"
#include "api/node_config.h"
#include "base/core/result.h"

namespace penstock::api::compat {

/// One setting of the exporter under all its names.
struct ExporterOption {
  std::vector<std::string_view> flags;  ///< "--collectors", "-f"; the first is the one that help shows
  std::string_view environment;         ///< "DCGM_EXPORTER_COLLECTORS"
  std::string_view help;
  bool on_off = false;  ///< true or false; as a flag alone it means true
  bool path = false;    ///< of a file: what is relative is taken from the working folder
};

/// All but --config-file, which is the agent's own --config.
const std::vector<ExporterOption>& ExporterOptions();

/// The variable that names its YAML file.
inline constexpr std::string_view kExporterConfigVariable = "DCGM_EXPORTER_CONFIG_FILE";

/// Arguments as Go's flag packages take them ("-collectors=x", "-k=false", "-mig-strategy=none") in the form that ours takes. Others stay.
std::vector<std::string> FromGoFlags(std::span<const std::string> arguments);

/// Whether these say --debug.
bool SaysDebug(std::span<const Given> given);

/// The YAML file (empty: none), then what was given on top of it, over `base`. Of several values for one flag the last counts, and the
/// others are not looked at, as there. Everything wrong at once (kInvalidArgument): in the file with file:line:column, in flags and
/// environment by their names.
base::Result<Translation> TranslateExporter(std::string_view text, std::string_view file, std::span<const Given> given,
                                            const NodeConfig& base);

}  // namespace penstock::api::compat
