// The verbs of `penstock`: each adds itself to the command line and runs from its callback. Only
// main.cc calls these functions.
#pragma once

#include <string>
#include <vector>

#include "app/options.h"

namespace CLI {
class App;
}

namespace penstock::app {

/// The options that all verbs share. Filled while the command line is parsed: verbs read them only
/// in their callbacks.
struct Common {
  Settings settings;      ///< paths: Resolve(settings)->paths.run_dir
  bool json = false;      ///< -o json
  bool wide = false;      ///< -o wide
  bool terminal = false;  ///< standard error is a terminal: progress and colours may be shown
  std::vector<std::string> command;  ///< of `run`: see CutCommand
};

/// Adds -o, the output format of lists.
void AddOutputOption(CLI::App& app, Common& common);

// Each callback sets `exit_code` to the program's exit status.
void AddRun(CLI::App& app, const Common& common, int& exit_code);
void AddQueue(CLI::App& app, const Common& common, int& exit_code);
void AddAssign(CLI::App& app, const Common& common, int& exit_code);
void AddTop(CLI::App& app, const Common& common, int& exit_code);
void AddUsage(CLI::App& app, const Common& common, int& exit_code);

// Groups of verbs; their parts add themselves to the group.
void AddCdi(CLI::App& app, const Common& common, int& exit_code);
void AddCdiGenerate(CLI::App& cdi, const Common& common, int& exit_code);
void AddRuntime(CLI::App& app, const Common& common, int& exit_code);
void AddMetrics(CLI::App& app, const Common& common, int& exit_code);
void AddRuntimeDoctor(CLI::App& runtime, const Common& common, int& exit_code);

/// Removes the command of `run` from the arguments and returns it: the words after "--", or from
/// the first word that is not an option. CLI11 must not parse the command, because it rejects words
/// that it does not define. Empty for the other verbs.
std::vector<std::string> CutCommand(const CLI::App& app, std::vector<std::string>& arguments);

}  // namespace penstock::app
