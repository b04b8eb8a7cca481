// Fuzzes an agent's preview of a configuration as read by clients: another version of the agent may
// have written it.
#include <cstdint>

#include "../oracle.h"
#include "api/config_preview.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  using fuzz::Require;
  const auto preview = api::ParseConfigPreview(fuzz::Text(data, size));
  if (!preview.ok()) {
    Require(preview.error().message().find("plan") != std::string::npos);
    return 0;
  }
  const auto again = api::ParseConfigPreview(api::ToJson(*preview));
  Require(again.ok() && *again == *preview);
  return 0;
}
