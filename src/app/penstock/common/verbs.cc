// Implements what the two command lines, `penstock` and its kubectl plugin, share.
#include "app/penstock/common/verbs.h"

#include <CLI/CLI.hpp>

namespace penstock::app {

void AddOutputOption(CLI::App& app, Common& common) {
  app.add_option_function<std::string>(
         "-o,--output",
         [&common](const std::string& format) {
           common.json = format == "json";
           common.wide = format == "wide";
         },
         "output format: table, wide or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"table", "wide", "json"}));
}

}  // namespace penstock::app
