// Loads the NVML library for nvidia-smi, and calls it by name; a missing function is an ordinary
// result.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

extern "C" {
#include "sim/nvml/nvml_abi.h"
}

namespace smi {

enum class InitResult { kOk, kNoLibrary, kFailed };

/// An NVML session for the lifetime of the object.
class Nvml {
 public:
  Nvml();
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  InitResult result() const { return result_; }
  NvReturn init_code() const { return init_code_; }

  /// Calls `name` with `arguments`; returns FUNCTION_NOT_FOUND if the library lacks it.
  template <typename... Arguments>
  NvReturn Call(const char* name, Arguments... arguments) const {
    void* symbol = Symbol(name);
    return symbol ? reinterpret_cast<NvReturn (*)(Arguments...)>(symbol)(arguments...)
                  : NV_FUNCTION_NOT_FOUND;
  }
  std::string ErrorString(NvReturn code) const;

  /// Return "550.54.15"; its branch, 550; "12.4".
  std::string DriverVersion() const;
  unsigned Branch() const;
  std::string CudaVersion() const;
  /// Returns major and first part of the library's own version, "550.54".
  std::string NvmlVersion() const;

 private:
  void* Symbol(const char* name) const;
  void* library_ = nullptr;
  mutable std::map<std::string, void*> symbols_;
  InitResult result_ = InitResult::kNoLibrary;
  NvReturn init_code_ = NV_SUCCESS;
};

struct Process {
  NvUint pid;
  NvUlong bytes;
  char type;
  std::string name;
  NvUint instance, compute;  // UINT32_MAX: on no MIG device
};

/// One GPU's answers; nothing if the call failed.
class Gpu {
 public:
  Gpu(const Nvml& nvml, unsigned index, NvDevice device)
      : nvml_(nvml), index_(index), device_(device) {}

  unsigned index() const { return index_; }
  NvDevice device() const { return device_; }
  const Nvml& nvml() const { return nvml_; }

  std::optional<std::string> Text(const char* name) const;
  template <typename... More>
  std::optional<NvUint> Number(const char* name, More... more) const {
    NvUint value = 0;
    return nvml_.Call(name, device_, more..., &value) == NV_SUCCESS ? std::optional(value)
                                                                    : std::nullopt;
  }
  template <typename T>
  std::optional<T> Struct(const char* name, T value = {}) const {
    return nvml_.Call(name, device_, &value) == NV_SUCCESS ? std::optional(value) : std::nullopt;
  }
  /// Returns the first or second value of a call that returns two.
  std::optional<NvUint> Pair(const char* name, int which) const;
  std::optional<NvUlong> Ecc(NvUint error, NvUint counter) const;
  std::optional<long long> Field(NvUint id) const;
  std::optional<NvUint> Remapped(int which) const;
  std::optional<NvUint> RetiredPages(NvUint cause) const;
  std::optional<NvPciInfo> Pci() const { return Struct<NvPciInfo>("nvmlDeviceGetPciInfo_v3"); }
  /// Total, reserved, used and free memory in MiB, as this driver's nvidia-smi counts it.
  struct Memory {
    NvUlong total, used, free;
    std::optional<NvUlong> reserved;
  };
  std::optional<Memory> MemoryMiB() const;
  std::vector<Process> Processes() const;

 private:
  void AddProcesses(std::vector<Process>& all, const char* name, char type) const;
  const Nvml& nvml_;
  unsigned index_;
  NvDevice device_;
};

/// A GPU that could not be reached, for nvidia-smi's message.
struct Unreachable {
  unsigned index;
  NvReturn code;
};

struct Gpus {
  std::vector<Gpu> found;
  std::vector<Unreachable> lost;
};

Gpus FindGpus(const Nvml& nvml);

}  // namespace smi
