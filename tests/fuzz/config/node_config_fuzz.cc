// Fuzzes node configurations, as written by users.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/config/node_config.h"
#include "backend/config_terms.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto config = penstock::api::ParseNodeConfig({reinterpret_cast<const char*>(data), size},
                                                     "fuzz", penstock::backend::ConfigTerms());
  if (!config.ok()) {
    if (config.error().code() != penstock::base::Code::kInvalidArgument ||
        config.error().message().rfind("fuzz", 0) != 0)
      std::abort();
    return 0;
  }
  // An accepted configuration is valid, and is the same after writing and reading it.
  if (!penstock::api::Validate(*config).ok()) std::abort();
  const std::string text = penstock::api::ToYaml(*config);
  const auto again =
      penstock::api::ParseNodeConfig(text, "again", penstock::backend::ConfigTerms());
  if (!again.ok() || penstock::api::ToYaml(*again) != text) std::abort();
  return 0;
}
