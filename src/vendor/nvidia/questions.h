// Calls about one device, and what their failing tells of it.
#pragma once

#include <optional>
#include <utility>

#include "base/core/result.h"
#include "vendor/nvidia/nvml.h"

namespace penstock::vendor::nvidia {

/// Whether this will be answered again as long as device and driver are the same.
bool SaysNever(abi::Return code);

/// For one look at one device. Not thread-safe.
class Questions {
 public:
  Questions(const Functions& nvml, abi::Device device) : nvml_(nvml), device_(device) {}

  /// True where the function answered.
  template <typename... P, typename... A>
  bool Ask(const Function<abi::Device, P...>& function, A... arguments) {
    return Note(function(device_, arguments...), function.name);
  }

  /// True where the code is that of success.
  bool Note(abi::Return code, const char* function);

  const Functions& nvml() const { return nvml_; }
  abi::Device device() const { return device_; }

  /// What was answered last.
  abi::Return last() const { return last_; }

  /// An answer that says that the driver went away.
  const std::optional<base::Error>& gone() const { return gone_; }

  /// Whether the device says of itself that it is lost, or answered nothing but "unknown error".
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

}  // namespace penstock::vendor::nvidia
