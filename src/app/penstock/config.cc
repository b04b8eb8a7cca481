// `penstock config check` and `show`. Needs no agent and changes nothing.
#include "app/penstock/config.h"

#include <iostream>

#include <unistd.h>

#include "os/file.h"

namespace penstock::app {

namespace {

base::Result<api::NodeConfig> ReadConfig(const std::string& file) {
  const bool standard_input = file == "-";
  ASSIGN(const std::string text, standard_input ? os::ReadAll(STDIN_FILENO, "standard input") : os::ReadFile(file));
  return api::ParseNodeConfig(text, standard_input ? "standard input" : file);
}

}  // namespace

int CheckConfig(const std::string& file) {
  const auto config = ReadConfig(file);
  if (!config.ok()) {
    std::cerr << config.error().message() << "\n";
    return 1;
  }
  std::cout << file << ": OK\n";
  return 0;
}

int ShowConfig(const Common& common) {
  const auto config = Resolve(common.settings);
  if (!config.ok()) {
    std::cerr << config.error().message() << "\n";
    return 1;
  }
  std::cout << ToYaml(*config);
  return 0;
}

}  // namespace penstock::app
