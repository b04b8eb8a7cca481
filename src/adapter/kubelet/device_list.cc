// A configured list is used, and `reason` says what is wrong with it; without one, the engine's
// abilities decide.
#include "adapter/kubelet/device_list.h"

#include <algorithm>

#include "base/core/strings.h"

namespace penstock::adapter::kubelet {
namespace {

using api::DeviceList;
using protocol::engine::cri::Cdi;
using protocol::engine::cri::EngineAbilities;
using protocol::engine::cri::EngineStatus;

/// Why this engine would not inject the CDI devices that this node's specifications name; empty if
/// it would.
std::string WhyNoCdi(const EngineAbilities& engine, const std::string& folder) {
  const std::string name = Describe(engine);
  switch (engine.cdi) {
    case Cdi::kNever: return name + " does not support CDI (" + engine.why + ")";
    case Cdi::kOff:
      return "CDI is disabled in " + name + " (" + engine.why +
             "); enable it with penstock runtime configure";
    case Cdi::kUnknown:
      return name +
             " does not report whether it injects CDI devices; if it does, set "
             "containers.deviceList";
    default: break;
  }
  if (ReadsFolder(engine, folder)) return "";
  return name + " reads CDI specifications from " + base::Join(engine.cdi_folders, ", ") +
         ", but they are written to " + folder;
}

std::string WhyNoCdi(const EngineStatus* known, const std::string& folder) {
  if (folder.empty()) return "no CDI specifications are written on this node";
  if (known == nullptr) return "the container engine is not queried";
  if (!known->engine) return known->problem;
  return WhyNoCdi(*known->engine, folder);
}

DeviceListChoice ChooseConfigured(const api::ContainersConfig& config, const EngineStatus* known,
                                  const std::string& folder) {
  DeviceListChoice listing{.strategies = config.device_list, .reason = "configured"};
  const std::string why = listing.cdi() ? WhyNoCdi(known, folder) : "";
  if (!why.empty() && known != nullptr) listing.reason += ", although " + why;
  listing.files = !listing.cdi() || !why.empty();
  return listing;
}

DeviceListChoice Chosen(const EngineStatus* known, const std::string& folder) {
  DeviceListChoice listing{.strategies = {DeviceList::kEnvvar}};
  if (!folder.empty() && known != nullptr && !known->queried) {
    listing.decided = false;
    listing.reason = "querying the capabilities of the container engine";
    return listing;
  }
  listing.reason = WhyNoCdi(known, folder);
  if (!listing.reason.empty()) return listing;
  const EngineAbilities& engine = *known->engine;
  listing.strategies = {engine.cdi_by_field ? DeviceList::kCdiCri : DeviceList::kCdiAnnotations};
  listing.files = false;
  listing.reason = Describe(engine) + " injects CDI devices" +
                   (engine.cdi_by_field ? "" : ", and reads their names from annotations");
  return listing;
}

bool IsCdi(DeviceList one) {
  return one == DeviceList::kCdiCri || one == DeviceList::kCdiAnnotations;
}

}  // namespace

bool DeviceListChoice::Has(DeviceList strategy) const {
  return std::ranges::find(strategies, strategy) != strategies.end();
}

bool DeviceListChoice::cdi() const { return std::ranges::any_of(strategies, IsCdi); }

bool DeviceListChoice::alone() const { return std::ranges::all_of(strategies, IsCdi); }

std::vector<std::string> DeviceListChoice::Names() const {
  std::vector<std::string> words;
  for (const DeviceList one : strategies) words.emplace_back(ToString(one));
  if (files) words.emplace_back("device-files");
  return words;
}

DeviceListChoice ChooseDeviceList(const api::ContainersConfig& config, const EngineStatus* engine,
                                  const std::string& folder) {
  DeviceListChoice listing = config.device_list.empty() ? Chosen(engine, folder)
                                                        : ChooseConfigured(config, engine, folder);
  if (config.device_files != api::Switch::kAuto)
    listing.files = config.device_files == api::Switch::kOn;
  return listing;
}

}  // namespace penstock::adapter::kubelet
