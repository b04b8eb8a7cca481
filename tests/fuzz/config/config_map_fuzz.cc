// Fuzzes ConfigMap manifests and other input of `penstock config check`.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "app/options.h"
#include "app/penstock/config/config_documents.h"

namespace app = penstock::app;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto documents = app::FindConfigurations(text, "fuzz");
  if (!documents.ok()) {
    if (documents.error().code() != penstock::base::Code::kInvalidArgument ||
        documents.error().message().rfind("fuzz", 0) != 0)
      std::abort();
    return 0;
  }
  for (const auto& document : *documents) {
    const auto resolved = app::ResolveText({}, document.text, document.name);
    if (!resolved.ok() && resolved.error().message().rfind(document.name, 0) != 0) std::abort();
  }
  return 0;
}
