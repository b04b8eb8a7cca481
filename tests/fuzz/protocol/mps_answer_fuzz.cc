// Fuzzes the responses of nvidia-cuda-mps-control, and the notes and environments that record how a
// daemon was started.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "backend/nvidia/mps/answers.h"
#include "backend/nvidia/mps/spec.h"

namespace mps = penstock::backend::nvidia::mps;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto percentage = mps::ReadPercentage(text);
      percentage && !(*percentage > 0 && *percentage <= 100))
    std::abort();
  if (const auto memory = mps::ReadMemory(text); memory && memory->count > 1ull << 60) std::abort();
  if (const auto pids = mps::ReadPids(text))
    for (const pid_t pid : *pids)
      if (pid < 0) std::abort();
  for (const char c : mps::Quote(text))
    if (c < ' ' || c > '~') std::abort();
  if (const auto spec = mps::ReadSpec(text))
    if (mps::ReadSpec(mps::WriteSpec(*spec)) != spec) std::abort();
  return 0;
}
