// The verbs of `penstock`: each adds itself to the command line and runs from its callback. Only main.cc calls them.
#pragma once

#include "app/options.h"

namespace CLI {
class App;
}

namespace penstock::app {

/// What all verbs share. Filled while the command line is parsed, so verbs read it from their callbacks only.
struct Common {
  Settings settings;      ///< paths: Resolve(settings)->paths.run_dir
  bool json = false;      ///< -o json
  bool terminal = false;  ///< standard error is a terminal: progress and colours may be used
};

// Each callback leaves the program's exit status in `exit_code`.
void AddRun(CLI::App& app, const Common& common, int& exit_code);
void AddQueue(CLI::App& app, const Common& common, int& exit_code);

}  // namespace penstock::app
