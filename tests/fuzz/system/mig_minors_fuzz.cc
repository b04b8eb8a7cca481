// Fuzzes /proc/driver/nvidia-caps/mig-minors.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "backend/nvidia/dialect/capability_files.h"

namespace nvidia = penstock::backend::nvidia;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto minors = nvidia::ParseCapabilityMinors(text, "mig-minors");
  if (!minors.ok()) {
    if (!minors.error().message().starts_with("mig-minors:")) std::abort();
    return 0;
  }
  for (const auto& [name, minor] : *minors)
    if (name.find("..") != std::string::npos ||
        !nvidia::CapabilityFile(minor).starts_with("/dev/nvidia-caps/nvidia-cap"))
      std::abort();
  const auto managing = nvidia::ManagementCapabilityFiles(text);
  if (!managing.ok() || managing->size() > 2) std::abort();
  return 0;
}
