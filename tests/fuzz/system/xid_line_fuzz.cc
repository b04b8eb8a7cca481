// Fuzzes log lines of NVIDIA's kernel modules, which contain process names and other foreign text.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "backend/nvidia/dialect/dialect.h"
#include "device/kinds.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  const auto& dialect = penstock::backend::nvidia::TheDialect();
  const auto evidence = dialect.FromKernelLog(line);
  if (!evidence) return 0;
  if (evidence->kind == penstock::device::kDriverLoaded) {  // of no device
    if (evidence->pci) std::abort();
    return 0;
  }
  if (!evidence->pci || evidence->kind.empty() || evidence->code < 0 || evidence->text.size() > 600)
    std::abort();
  if (dialect.Judge(*evidence).reason.empty()) std::abort();
  return 0;
}
