// `penstock runtime`: the group of its verbs.
#include <CLI/CLI.hpp>

#include "app/penstock/common/verbs.h"
#include "app/penstock/runtime/runtime_configure.h"

namespace penstock::app {

void AddRuntime(CLI::App& app, const Common& common, int& exit_code) {
  CLI::App* runtime =
      app.add_subcommand(
             "runtime",
             "Configure container engines, and find what makes devices disappear from containers")
          ->fallthrough();
  runtime->require_subcommand(1);
  AddRuntimeConfigure(*runtime, common, exit_code);
  AddRuntimeUnconfigure(*runtime, common, exit_code);
  AddRuntimeDoctor(*runtime, common, exit_code);
}

}  // namespace penstock::app
