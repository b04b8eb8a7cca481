#include <iostream>

#include <nlohmann/json.hpp>

#include "app/penstock/cdi/cdi_files.h"
#include "app/penstock/cdi/cdi_verbs.h"
#include "app/penstock/common/table.h"
#include "base/core/json_text.h"

namespace penstock::app {

namespace {

using Json = nlohmann::ordered_json;
using api::cdi::Registry;

std::string JsonOf(const Registry& registry) {
  Json devices = Json::array();
  for (const auto& device : registry.devices())
    devices.push_back({{"name", device.name}, {"file", device.file}});
  const Json tree = {{"devices", devices}, {"problems", registry.problems()}};
  return base::JsonText(tree);
}

}  // namespace

base::Result<command::Shown> ListCdi(const Common& common,
                                     const std::vector<std::string>& folders) {
  const Registry registry(ReadSpecFolders(folders));
  if (common.json()) return command::Shown(JsonOf(registry));
  const auto devices = registry.devices();
  for (const std::string& problem : registry.problems())
    std::cerr << "penstock cdi list: " << Printable(problem) << "\n";
  std::cerr << "Found " << devices.size() << " CDI devices\n";
  if (common.wide()) {
    Table table({"NAME", "FILE"});
    for (const auto& device : devices) table.Add({device.name, device.file});
    return command::Shown(table.empty() ? "" : table.Render(common.style()));
  }
  std::string text;
  for (const auto& device : devices) text += device.name + "\n";
  return command::Shown(text);
}

}  // namespace penstock::app
