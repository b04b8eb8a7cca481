// Fuzzes configuration files of mig-parted with the names of profiles in them: what is accepted is
// written and read again without a change.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "api/compat/nvidia/mig_parted.h"
#include "backend/nvidia/dialect/mig_profile.h"

namespace compat = penstock::api::compat;
namespace nvidia = penstock::backend::nvidia;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto read_profile = [](std::string_view name) -> penstock::base::Result<std::string> {
    auto profile = nvidia::ParseMigProfile(name);
    if (!profile.ok()) return profile.error();
    return nvidia::ToString(*profile);
  };
  if (const auto name = read_profile(text); name.ok() && *read_profile(*name) != *name)
    std::abort();
  const auto layouts = compat::TranslateMigParted(text, "fuzz", read_profile);
  if (!layouts.ok()) {
    if (layouts.error().code() != penstock::base::Code::kInvalidArgument ||
        layouts.error().message().rfind("fuzz", 0) != 0)
      std::abort();
    return 0;
  }
  if (layouts->layouts.empty()) return 0;  // mig-parted requires one
  const auto again =
      compat::TranslateMigParted(compat::WriteMigParted(*layouts), "fuzz", read_profile);
  if (!again.ok() || *again != *layouts) std::abort();
  return 0;
}
