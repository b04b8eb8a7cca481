// Fuzzes the checkpoint of devices' health, which a crash, a full disk or another version of the
// agent may have damaged.
#include <chrono>
#include <cstdint>

#include "../oracle.h"
#include "node/health/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  using fuzz::Require;
  const base::WallTime now{std::chrono::hours(24 * 20000)};
  const auto memory =
      node::health::DecodeHealthCheckpoint(fuzz::Text(data, size), "boot", "fuzz", now);
  if (!memory.ok()) {
    const base::Code code = memory.error().code();
    Require(code == base::Code::kDataLoss || code == base::Code::kFailedPrecondition);
    Require(memory.error().message().find("fuzz") != std::string::npos);
    return 0;
  }
  for (const auto& [id, device] : memory->devices) {
    Require(device.recovery.relapses >= 0 && device.recovery.passed >= base::Duration::zero());
    Require(!device.recovery.recovered_ago ||
            *device.recovery.recovered_ago >= base::Duration::zero());
  }
  const std::string text = node::health::EncodeHealthCheckpoint(*memory, "boot", now);
  const auto again = node::health::DecodeHealthCheckpoint(text, "boot", "fuzz", now);
  Require(again.ok() && node::health::EncodeHealthCheckpoint(*again, "boot", now) == text);
  // A reboot clears every fault.
  const auto other = node::health::DecodeHealthCheckpoint(text, "another boot", "fuzz", now);
  Require(other.ok() && other->devices.size() == memory->devices.size());
  for (const auto& [id, device] : other->devices)
    Require(device.faults.empty() && !device.recovery.unhealthy);
  return 0;
}
