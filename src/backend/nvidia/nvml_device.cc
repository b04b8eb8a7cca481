#include "backend/nvidia/nvml_device.h"

#include "backend/nvidia/facts.h"

namespace penstock::backend::nvidia {

bool IsPermanent(abi::Return code) {
  switch (code) {
    case abi::kNotSupported:
    case abi::kFunctionNotFound:
    case abi::kNoPermission:
    case abi::kInvalidArgument:  // a field, a clock or a kind of error newer than the driver
    case abi::kArgumentVersionMismatch:
    case abi::kDeprecated:
    case abi::kVgpuEccNotSupported:
    case abi::kFreqNotSupported: return true;
    default: return false;
  }
}

bool NvmlDevice::Note(abi::Return code, const char* function) {
  last_ = code;
  if (code == abi::kSuccess) {
    ++answered_;
    return true;
  }
  if (IsDriverGone(code)) gone_ = ToError(code, function);
  // "Unknown error" from one call concerns that call; from all calls it concerns the device.
  const bool certain = code == abi::kGpuIsLost || code == abi::kResetRequired;
  if (certain && !certain_) {
    certain_ = true;
    lost_ = code;
    lost_function_ = function;
  } else if (IsDeviceLost(code) && lost_ == abi::kSuccess) {
    lost_ = code;
    lost_function_ = function;
  }
  return false;
}

}  // namespace penstock::backend::nvidia
