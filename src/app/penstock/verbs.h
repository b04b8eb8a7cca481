// The verbs of `penstock`: each adds itself to the command line and runs from its callback. Only main.cc calls them.
#pragma once

#include <string>
#include <vector>

#include "app/options.h"

namespace CLI {
class App;
}

namespace penstock::app {

/// What all verbs share. Filled while the command line is parsed, so verbs read it from their callbacks only.
struct Common {
  Settings settings;                 ///< paths: Resolve(settings)->paths.run_dir
  bool json = false;                 ///< -o json
  bool wide = false;                 ///< -o wide
  bool terminal = false;             ///< standard error is a terminal: progress and colours may be used
  std::vector<std::string> command;  ///< of `run`: see CutCommand
};

/// Adds -o, which says how lists are printed.
void AddOutputOption(CLI::App& app, Common& common);

// Each callback leaves the program's exit status in `exit_code`.
void AddRun(CLI::App& app, const Common& common, int& exit_code);
void AddQueue(CLI::App& app, const Common& common, int& exit_code);
void AddDoor(CLI::App& app, const Common& common, int& exit_code);
void AddTop(CLI::App& app, const Common& common, int& exit_code);
void AddUsage(CLI::App& app, const Common& common, int& exit_code);

// Folders of verbs; their parts add themselves to them.
void AddCdi(CLI::App& app, const Common& common, int& exit_code);
void AddCdiGenerate(CLI::App& cdi, const Common& common, int& exit_code);
void AddRuntime(CLI::App& app, const Common& common, int& exit_code);
void AddMetrics(CLI::App& app, const Common& common, int& exit_code);
void AddRuntimeDoctor(CLI::App& runtime, const Common& common, int& exit_code);

/// Cuts the command of `run` off the arguments and returns it: what follows "--", or its first word that is no option. The command's own
/// words must not meet CLI11, which knows no word that is not its business. Empty for the other verbs.
std::vector<std::string> CutCommand(const CLI::App& app, std::vector<std::string>& arguments);

}  // namespace penstock::app
