#include "app/stopped_services.h"

#include <nlohmann/json.hpp>

#include "os/kept_file.h"

namespace penstock::app {
namespace {

constexpr int kStoppedVersion = 1;

}  // namespace

std::string StoppedServicesPath(const std::string& state_dir) {
  return state_dir + "/services.json";
}

std::string EncodeStoppedServices(const StoppedServices& stopped) {
  return os::EncodeKept<nlohmann::json>(kStoppedVersion, [&](auto& write) {
    write("boot", stopped.boot);
    write("units", stopped.units, {.if_any = true});
  });
}

base::Result<StoppedServices> DecodeStoppedServices(std::string_view text, std::string_view file) {
  StoppedServices stopped;
  TRY(os::DecodeKept(kStoppedVersion, text, file, [&](base::StructReader& read) {
    read("boot", stopped.boot);
    read("units", stopped.units, {.if_any = true});
  }));
  return stopped;
}

base::Result<StoppedServices> LoadStoppedServices(const std::string& state_dir,
                                                  const std::string& boot_id) {
  const std::string path = StoppedServicesPath(state_dir);
  ASSIGN(StoppedServices stopped,
         os::LoadKept<StoppedServices>(
             path, "the services that were stopped",
             [&](const std::string& text) { return DecodeStoppedServices(text, path); }));
  if (stopped.boot != boot_id) stopped = {.boot = boot_id, .units = {}};
  return stopped;
}

}  // namespace penstock::app
