// Fuzzes log lines of AMD's driver, which contain process names and other foreign text.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "backend/amd/dialect/kernel_log.h"
#include "device/kinds.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const auto evidence = penstock::backend::amd::ParseKernelLine(line);
  if (!evidence || evidence->kind == penstock::device::kDriverLoaded) return 0;
  if (!evidence->pci || evidence->kind.empty() || evidence->code < 0 || evidence->text.size() > 32)
    std::abort();
  // Names of rings and blocks: no other text of the line gets into a reason.
  for (const char c : evidence->text)
    if (c <= ' ' || c >= 127 || c == '"') std::abort();
  if (penstock::backend::amd::JudgeLine(*evidence).reason.empty()) std::abort();
  return 0;
}
