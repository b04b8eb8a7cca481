// NVML calls about one device, and what their errors say about it.
#pragma once

#include <optional>

#include "backend/nvidia/nvml.h"
#include "base/core/result.h"

namespace penstock::backend::nvidia {

/// Whether this answer stays the same as long as device and driver are the same.
bool IsPermanent(abi::Return code);

/// The calls of one reading of one device. Not thread-safe.
class NvmlDevice {
 public:
  NvmlDevice(const Functions& nvml, abi::Device device) : nvml_(nvml), device_(device) {}

  /// Calls the function; returns true if it succeeded.
  template <typename... P, typename... A>
  bool Call(const Function<abi::Device, P...>& function, A... arguments) {
    return Note(function(device_, arguments...), function.name);
  }

  /// Records the code of a call; returns true for success.
  bool Note(abi::Return code, const char* function);

  const Functions& nvml() const { return nvml_; }
  abi::Device device() const { return device_; }

  /// The last answer.
  abi::Return last() const { return last_; }

  /// The error of an answer that means that the driver went away.
  const std::optional<base::Error>& gone() const { return gone_; }

  /// Whether the device reports that it is lost, or answered every call with "unknown error".
  bool lost() const { return certain_ || (answered_ == 0 && lost_ != abi::kSuccess); }
  abi::Return lost_code() const { return lost_; }
  const char* lost_function() const { return lost_function_; }

 private:
  const Functions& nvml_;
  abi::Device device_;
  abi::Return last_ = abi::kSuccess;
  int answered_ = 0;
  bool certain_ = false;
  abi::Return lost_ = abi::kSuccess;
  const char* lost_function_ = "";
  std::optional<base::Error> gone_;
};

}  // namespace penstock::backend::nvidia
