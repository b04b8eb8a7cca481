#include <iostream>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "app/penstock/cdi/cdi_files.h"
#include "app/penstock/cdi/cdi_verbs.h"
#include "app/penstock/common/table.h"

namespace penstock::app {

namespace {

using Json = nlohmann::ordered_json;
using api::cdi::Registry;

void PrintJson(const Registry& registry) {
  Json devices = Json::array();
  for (const auto& device : registry.devices())
    devices.push_back({{"name", device.name}, {"file", device.file}});
  const Json tree = {{"devices", devices}, {"problems", registry.problems()}};
  std::cout << tree.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

}  // namespace

int ListCdi(const Common& common, const std::vector<std::string>& folders) {
  const Registry registry(ReadSpecFolders(folders));
  const auto devices = registry.devices();
  if (common.json) {
    PrintJson(registry);
  } else {
    for (const std::string& problem : registry.problems())
      std::cerr << "penstock cdi list: " << Printable(problem) << "\n";
    std::cerr << "Found " << devices.size() << " CDI devices\n";
    Table table({"NAME", "FILE"});
    for (const auto& device : devices) table.Add({device.name, device.file});
    if (common.wide && !table.empty()) std::cout << table.Render(StyleOf(STDOUT_FILENO));
    if (!common.wide)
      for (const auto& device : devices) std::cout << device.name << "\n";
  }
  return std::cout.flush() ? 0 : 1;
}

}  // namespace penstock::app
