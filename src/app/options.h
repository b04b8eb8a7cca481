// The options that every program of ours which looks at a node takes: where things lie, and the configuration file below them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/node_config.h"
#include "base/result.h"

namespace CLI {
class App;
}

namespace penstock::app {

/// What the command line said, before the file is read.
struct Settings {
  std::string config_file;                   ///< --config; empty: none
  std::map<std::string, std::string> flags;  ///< "--driver-root" → its value, for the flags that were given
};

/// Adds --config, --node-name, --listen and every flag of api::PathOptions(). `settings` must outlive the parsing. Where the app has
/// subcommands, call fallthrough() on each so that the flags are understood on either side of it.
void AddNodeOptions(CLI::App& app, Settings& settings);

/// The file first, the flags on top; then all of it checked (api::Validate). A relative path in a flag is taken from the working folder.
/// Errors name the file, or each flag and key.
base::Result<api::NodeConfig> Resolve(const Settings& settings);

/// The flags that were given, --config among them, as arguments for another program of ours that takes the same ones; paths made absolute.
std::vector<std::string> ToArguments(const Settings& settings);

}  // namespace penstock::app
