// The options that every program of ours which looks at a node takes: where things lie, and the configuration file below them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/compat/device_plugin.h"
#include "api/compat/exporter_options.h"
#include "api/node_config.h"
#include "base/core/document.h"
#include "base/core/result.h"

namespace CLI {
class App;
}

namespace penstock::app {

/// What the command line and the environment said, before the file is read.
struct Settings {
  std::string config_file;                       ///< --config; empty: none
  std::map<std::string, std::string> flags;      ///< "--driver-root" → its value, for the flags that were given
  std::vector<api::compat::Given> plugin_flags;  ///< of NVIDIA's device plugin, in the order of api::compat::PluginOptions()
  std::vector<api::compat::Given> plugin_environment;
  base::Reading plugin_reading = base::Reading::kLenient;                ///< how a file of the device plugin is read
  std::vector<api::compat::Given> exporter_flags, exporter_environment;  ///< of dcgm-exporter, likewise (api::compat::ExporterOptions())
};

/// Adds --config, --node-name, --listen, those of the cluster's connection and every flag of api::PathOptions(). `settings` must outlive
/// the parsing. Where the app has subcommands, call fallthrough() on each so that the flags are understood on either side of it.
void AddNodeOptions(CLI::App& app, Settings& settings);

/// Adds the flags of NVIDIA's device plugin and GPU Feature Discovery (api::compat::PluginOptions()) but for those that AddNodeOptions has.
/// The agent's.
void AddPluginOptions(CLI::App& app, Settings& settings);

/// Adds the flags of dcgm-exporter (api::compat::ExporterOptions()). They are understood in our form alone: api::compat::FromGoFlags makes
/// it of the exporter's. The agent's.
void AddExporterOptions(CLI::App& app, Settings& settings);

/// What is to be said of arguments that no option takes (CLI::App::remaining): each with the flag that may be meant.
std::string DescribeUnknown(const CLI::App& app, const std::vector<std::string>& arguments);

/// Takes what NVIDIA's device plugin and dcgm-exporter take from their environment; CONFIG_FILE where no --config was given. After the
/// command line was parsed. `lookup` is ::getenv but in tests.
void TakeEnvironment(Settings& settings, const std::function<const char*(const char*)>& lookup);

/// What file, environment and flags make together.
struct Resolved {
  api::NodeConfig config;
  std::string origin;                ///< "defaults", "file /etc/penstock/node.yaml"
  std::vector<std::string> not_yet;  ///< see api::compat::Translation
  std::vector<std::string> remarks;
  api::NodeConfig below;  ///< the file alone, where it is a NodeConfig; else the defaults
  std::string problem;    ///< why the file itself is not in force (ResolveForStart); empty where it is
};

/// The text (a NodeConfig, a device plugin's file or dcgm-exporter's, told apart by their content; empty: none) first, the environment on
/// top, then the flags; then all of it checked (api::Validate). A relative path in a flag is taken from the working folder. Errors name the
/// file, or each flag, variable and key. Other people's files are put on top of `below`; a NodeConfig says everything itself.
base::Result<Resolved> ResolveText(const Settings& settings, std::string_view text, const std::string& file,
                                   const api::NodeConfig& below = {});

/// The same with the text of the configuration file, where there is one. Blocks.
base::Result<Resolved> ResolveAll(const Settings& settings);
base::Result<api::NodeConfig> Resolve(const Settings& settings);

/// What is read of a configuration file. Blocks.
base::Result<std::string> ReadConfigText(const std::string& file);

/// The flags that were given, --config among them, as arguments for another program of ours that takes the same ones; paths made absolute.
std::vector<std::string> ToArguments(const Settings& settings);

}  // namespace penstock::app
