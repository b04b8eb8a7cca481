// Fuzzes the configuration of AMD's Device Config Manager: a profile is in order or wrong, one that
// is in order names each GPU once, and errors name the file.
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "api/compat/amd/dcm_profiles.h"

namespace compat = penstock::api::compat;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto read = compat::TranslateDcmProfiles(text, "fuzz");
  if (!read.ok()) {
    if (read.error().code() != penstock::base::Code::kInvalidArgument ||
        read.error().message().rfind("fuzz", 0) != 0)
      std::abort();
    return 0;
  }
  for (const auto& [name, wrong] : read->wrong)
    if (wrong.text.rfind("fuzz", 0) != 0 || read->layouts.Find(name) != nullptr) std::abort();
  for (const auto& layout : read->layouts.layouts) {
    std::set<int> taken;
    for (const auto& rule : layout.rules)
      for (const int device : rule.devices)
        if (device < 0 || device >= layout.total || !taken.insert(device).second) std::abort();
    if (taken.empty()) std::abort();
  }
  return 0;
}
