// Loads the simulated library with a real dlopen, as other programs do. For tests only.
#pragma once

#include <string>

#include <dlfcn.h>

#include "sim/testing.h"

extern "C" {
#include "sim/nvml/nvml_abi.h"
}

namespace penstock::sim::testing {

/// The library of a machine's tree; each instance is a separate copy, so that two can be loaded at
/// once.
class Library {
 public:
  explicit Library(const std::string& root)
      : handle_(dlopen((root + "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1").c_str(),
                       RTLD_NOW | RTLD_LOCAL)) {
    EXPECT_NE(handle_, nullptr) << dlerror();
  }
  ~Library() {
    if (handle_) dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  template <typename... Arguments>
  NvReturn operator()(const char* name, Arguments... arguments) const {
    void* symbol = dlsym(handle_, name);
    EXPECT_NE(symbol, nullptr) << name;
    return symbol ? reinterpret_cast<NvReturn (*)(Arguments...)>(symbol)(arguments...)
                  : NV_FUNCTION_NOT_FOUND;
  }
  bool Has(const char* name) const { return dlsym(handle_, name) != nullptr; }

  NvDevice Device(NvUint index) const {
    NvDevice device = nullptr;
    EXPECT_EQ((*this)("nvmlDeviceGetHandleByIndex_v2", index, &device), NV_SUCCESS);
    return device;
  }

 private:
  void* handle_;
};

/// A running machine and a session with its library.
struct Session : Running {
  explicit Session(const std::string& name, const Control::StartOptions& options = {})
      : Running(name, options), nvml(root()) {
    EXPECT_EQ(nvml("nvmlInit_v2"), NV_SUCCESS);
  }

  Library nvml;
};

}  // namespace penstock::sim::testing
