// What an agent keeps of devices' health, as a crash, a full disk or another version of the agent may have left it.
#include <chrono>
#include <cstdint>

#include "node/health/memory.h"
#include "oracle.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  using fuzz::Require;
  const base::WallTime now{std::chrono::hours(24 * 20000)};
  const auto memory = node::health::DecodeMemory(fuzz::Text(data, size), "boot", "fuzz", now);
  if (!memory.ok()) {
    const base::Code code = memory.error().code();
    Require(code == base::Code::kDataLoss || code == base::Code::kFailedPrecondition);
    Require(memory.error().message().find("fuzz") != std::string::npos);
    return 0;
  }
  for (const auto& [id, device] : memory->devices) {
    Require(device.recovery.relapses >= 0 && device.recovery.passed >= base::Duration::zero());
    Require(!device.recovery.recovered_ago || *device.recovery.recovered_ago >= base::Duration::zero());
  }
  const std::string text = node::health::EncodeMemory(*memory, "boot", now);
  const auto again = node::health::DecodeMemory(text, "boot", "fuzz", now);
  Require(again.ok() && node::health::EncodeMemory(*again, "boot", now) == text);
  // Another boot ends every trouble.
  const auto other = node::health::DecodeMemory(text, "another boot", "fuzz", now);
  Require(other.ok() && other->devices.size() == memory->devices.size());
  for (const auto& [id, device] : other->devices) Require(device.troubles.empty() && !device.recovery.unwell);
  return 0;
}
