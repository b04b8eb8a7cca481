#include "device/sharing.h"

namespace penstock::device {

std::string_view ToString(Sharing sharing) {
  switch (sharing) {
    case Sharing::kNone: return "none";
    case Sharing::kTimeSlicing: return "time-slicing";
    case Sharing::kServer: return "mps";  // the only such server that users have a word for
  }
  return "none";
}

std::string_view ToString(Enforcer enforcer) {
  return enforcer == Enforcer::kServer ? "server" : "nothing";
}

bool IsSetOf(const std::string& set, const std::string& device, const std::string& resource) {
  return set == resource || set == device;
}

Limits LimitsOf(const SharedDevice& shared) {
  Limits limits{.memory = shared.memory, .compute_percent = shared.compute_percent};
  if (limits.memory.count > 0) limits.memory_by = Enforcer::kServer;
  if (limits.compute_percent > 0) limits.compute_by = Enforcer::kServer;
  return limits;
}

std::string_view ToString(Isolation isolation) {
  switch (isolation) {
    case Isolation::kNone: return "none";
    case Isolation::kMemoryPerProcess: return "memory-per-process";
    case Isolation::kMemory: return "memory";
    case Isolation::kMemoryCompute: return "memory-compute";
    case Isolation::kHardware: return "hardware";
  }
  return "none";
}

}  // namespace penstock::device
