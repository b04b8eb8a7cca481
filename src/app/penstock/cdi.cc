// `penstock cdi`: the folder of its verbs.
#include <CLI/CLI.hpp>

#include "app/penstock/verbs.h"

namespace penstock::app {

void AddCdi(CLI::App& app, const Common& common, int& exit_code) {
  CLI::App* cdi =
      app.add_subcommand("cdi", "specifications of the Container Device Interface, by which engines give devices to containers");
  cdi->require_subcommand(1);
  AddCdiGenerate(*cdi, common, exit_code);
}

}  // namespace penstock::app
