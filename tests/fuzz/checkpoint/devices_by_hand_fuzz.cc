// Fuzzes doors.json, which a crash, a full disk or another version of the agent may have damaged.
#include <cstdint>

#include "../oracle.h"
#include "node/change/manual_assignments.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  using fuzz::Require;
  const auto devices = node::change::DecodeManualAssignments(fuzz::Text(data, size), "fuzz");
  if (!devices.ok()) {
    const base::Code code = devices.error().code();
    Require(code == base::Code::kDataLoss || code == base::Code::kFailedPrecondition);
    Require(devices.error().message().find("fuzz") != std::string::npos);
    return 0;
  }
  const auto again = node::change::DecodeManualAssignments(
      node::change::EncodeManualAssignments(*devices), "fuzz");
  Require(again.ok() && *again == *devices);
  return 0;
}
