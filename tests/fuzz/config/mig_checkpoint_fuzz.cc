// Fuzzes checkpoints of mig-parted: what is accepted is written and read again without a change.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/compat/nvidia/mig_checkpoint.h"

namespace compat = penstock::api::compat;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto checkpoint = compat::ReadMigCheckpoint(text, "fuzz");
  if (!checkpoint.ok()) {
    if (checkpoint.error().code() != penstock::base::Code::kInvalidArgument ||
        checkpoint.error().message().rfind("fuzz", 0) != 0)
      std::abort();
    return 0;
  }
  const auto again = compat::ReadMigCheckpoint(compat::WriteMigCheckpoint(*checkpoint), "fuzz");
  if (!again.ok() || *again != *checkpoint) std::abort();
  return 0;
}
