// Fuzzes the MIG manager's list of services: what is accepted can be passed to systemctl as the
// name of a service, and errors name the file.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "api/compat/nvidia/gpu_clients.h"

namespace compat = penstock::api::compat;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto services = compat::TranslateGpuClients(text, "fuzz");
  if (!services.ok()) {
    if (services.error().code() != penstock::base::Code::kInvalidArgument ||
        services.error().message().rfind("fuzz", 0) != 0)
      std::abort();
    return 0;
  }
  if (services->size() > 32 ||
      std::set<std::string>(services->begin(), services->end()).size() != services->size())
    std::abort();
  for (const std::string& name : *services)
    if (!name.ends_with(".service") || name.size() > 255 || name.front() == '-' ||
        name.find_first_of(" /*?[]@%$\"'\n") != std::string::npos)
      std::abort();
  return 0;
}
