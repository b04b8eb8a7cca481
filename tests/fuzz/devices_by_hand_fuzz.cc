// doors.json, as a crash, a full disk or another version of the agent may have left it.
#include <cstdint>

#include "door/doors_file.h"
#include "oracle.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  using fuzz::Require;
  const auto devices = door::DecodeDoors(fuzz::Text(data, size), "fuzz");
  if (!devices.ok()) {
    const base::Code code = devices.error().code();
    Require(code == base::Code::kDataLoss || code == base::Code::kFailedPrecondition);
    Require(devices.error().message().find("fuzz") != std::string::npos);
    return 0;
  }
  const auto again = door::DecodeDoors(door::EncodeDoors(*devices), "fuzz");
  Require(again.ok() && *again == *devices);
  return 0;
}
