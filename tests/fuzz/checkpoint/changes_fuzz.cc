// Fuzzes changes.json, which a crash, a full disk or another version of the agent may have damaged.
#include <cstdint>

#include "../oracle.h"
#include "node/change/device_change.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  using fuzz::Require;
  const auto changes = node::change::DecodeChanges(fuzz::Text(data, size), "fuzz");
  if (!changes.ok()) {
    const base::Code code = changes.error().code();
    Require(code == base::Code::kDataLoss || code == base::Code::kFailedPrecondition);
    Require(changes.error().message().find("fuzz") != std::string::npos);
    return 0;
  }
  const auto again = node::change::DecodeChanges(node::change::EncodeChanges(*changes), "fuzz");
  Require(again.ok() && *again == *changes);
  return 0;
}
