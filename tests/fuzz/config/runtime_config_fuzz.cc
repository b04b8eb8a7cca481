// Fuzzes config.toml of NVIDIA's container runtime: users' own files of any age.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "hook/runtime/nvidia/config.h"

namespace runtime = penstock::hook::runtime;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = runtime::ParseConfig(text, "fuzz");
  if (!config.ok() && config.error().message().rfind("fuzz", 0) != 0) std::abort();
  if (config.ok() && config->runtimes.empty()) std::abort();
  // A running container can be stopped whatever the file contains.
  const auto runtimes = runtime::ParseRuntimes(text);
  if (runtimes.empty() || (config.ok() && runtimes != config->runtimes)) std::abort();
  return 0;
}
