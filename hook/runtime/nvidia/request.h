// Determines which devices and which parts of NVIDIA's driver a container requests: by annotation,
// by mounts, by environment. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "hook/runtime/facts.h"
#include "hook/runtime/nvidia/config.h"

namespace penstock::hook::runtime {

/// More names than any machine has devices. A longer list is refused, so that it cannot keep the
/// engine busy.
inline constexpr std::size_t kMaxNames = 4096;

/// A message about a request that was not followed exactly.
struct Remark {
  RuntimeLogLevel level = RuntimeLogLevel::kInfo;
  std::string text;
  bool operator==(const Remark&) const = default;
};

struct DeviceRequest {
  std::vector<std::string>
      devices;  ///< qualified CDI names, each once: the container does not start without them
  std::vector<std::string> optional_devices;  ///< likewise; missing ones are only logged
  bool driver = false;                        ///< "none": the driver's files without any device
  bool by_annotation = false;                 ///< requested as engines with CDI support do
  std::vector<Remark> remarks;

  /// Whether the container requests nothing and runs unchanged.
  bool Empty() const { return devices.empty() && optional_devices.empty() && !driver; }
};

/// By precedence: CDI annotations, the list of mounts, the environment (NVIDIA container toolkit,
/// internal/config/image/cuda_image.go). Every name is validated before it is used.
/// kInvalidArgument names the variable, annotation or mount and what is wrong with it;
/// kResourceExhausted if the container requests too many; kPermissionDenied for requests that only
/// privileged containers may make.
base::Result<DeviceRequest> ReadRequest(const RuntimeFacts& facts, const Config& config);

/// Whether a hook of the bundle is a program that this runtime replaces: it would inject the
/// devices a second time.
bool IsReplacedHook(std::string_view path);

/// Whether this container may request devices by its environment, which an image may have set.
bool EnvironmentMayRequest(const RuntimeFacts& facts, const Config& config);

/// That a request by environment, by the variable `who`, is ignored; with what to do.
Remark IgnoredEnvironment(std::string_view who, const Config& config);

}  // namespace penstock::hook::runtime
