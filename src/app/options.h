// Options of every Penstock program that reads a node: paths and addresses from the command line,
// the environment and the configuration file.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/compat/nvidia/device_plugin.h"
#include "api/compat/nvidia/exporter_options.h"
#include "api/config/node_config.h"
#include "app/command/verb.h"
#include "base/core/document.h"
#include "base/core/result.h"

namespace penstock::app {

/// The command line and the environment, before the file is read.
struct Settings {
  std::string config_file;      ///< --config; empty: none
  std::string config_revision;  ///< api::kConfigRevisionVariable
  std::map<std::string, std::string>
      flags;  ///< "--driver-root" → its value, for the flags that were given
  std::vector<api::compat::Given>
      plugin_flags;  ///< of NVIDIA's device plugin, in the order of api::compat::PluginOptions()
  std::vector<api::compat::Given> plugin_environment;
  base::ReadingMode plugin_reading =
      base::ReadingMode::kLenient;  ///< how a file of the device plugin is read
  std::vector<api::compat::Given> exporter_flags,
      exporter_environment;  ///< of dcgm-exporter, likewise (api::compat::ExporterOptions())
};

/// The options --config, --node-name, --listen, those of the cluster connection and every flag of
/// api::PathOptions(). `settings` must outlive the parsing.
std::vector<command::Option> NodeOptions(Settings& settings);

/// The names of all of these, for Verb::shares; and of those that select an agent.
std::vector<std::string> NodeOptionNames();
std::vector<std::string> AgentOptionNames();

/// The flags of NVIDIA's device plugin and GPU Feature Discovery (api::compat::PluginOptions())
/// except those that NodeOptions has. For the agent only.
std::vector<command::Option> PluginOptions(Settings& settings);

/// The flags of dcgm-exporter (api::compat::ExporterOptions()), in Penstock's form only:
/// api::compat::FromGoFlags converts the exporter's form first. For the agent only.
std::vector<command::Option> ExporterOptions(Settings& settings);

/// Takes the environment variables of NVIDIA's device plugin and dcgm-exporter, the revision of the
/// configuration file, and CONFIG_FILE where --config was not given. Call it after the command line
/// was parsed. `lookup` is ::getenv except in tests.
void TakeEnvironment(Settings& settings, const std::function<const char*(const char*)>& lookup);

/// The result of merging file, environment and flags.
struct Resolved {
  api::NodeConfig config;
  std::string origin;                ///< "defaults", "file /etc/penstock/node.yaml"
  std::vector<std::string> not_yet;  ///< see api::compat::Translation
  std::vector<std::string> remarks;
  api::NodeConfig below;  ///< the file alone, where it is a NodeConfig; else the defaults
  std::string problem;    ///< why the file itself is not in force (ResolveForStart); empty: it is
};

/// Merges the text (a NodeConfig, a device plugin's file or dcgm-exporter's, recognised by its
/// content; empty: none), then the environment, then the flags, and validates the result
/// (api::Validate). Relative paths in flags are relative to the working folder. Errors name the
/// file, or each flag, variable and key. Files of other programs are merged on top of `below`; a
/// NodeConfig replaces it.
base::Result<Resolved> ResolveText(const Settings& settings, std::string_view text,
                                   const std::string& file, const api::NodeConfig& below = {});

/// Like ResolveText, with the content of the configuration file, if there is one. Blocks.
base::Result<Resolved> ResolveAll(const Settings& settings);
base::Result<api::NodeConfig> Resolve(const Settings& settings);

/// Reads the text of a configuration file. Blocks.
base::Result<std::string> ReadConfigText(const std::string& file);

/// Returns the flags that were given, including --config, as arguments for another Penstock program
/// with the same flags. Paths are absolute.
std::vector<std::string> ToArguments(const Settings& settings);

}  // namespace penstock::app
