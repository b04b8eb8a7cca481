// What a control daemon is started with: its GPUs in order, and the limits it is to hold. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/quantity.h"
#include "device/sharing.h"

namespace penstock::vendor::nvidia::mps {

struct Spec {
  struct Gpu {
    std::string id;
    int shares = 1;
    base::Bytes memory;  ///< limit for each process, whole MiB
    bool operator==(const Gpu&) const = default;
  };
  std::string set;        ///< "nvidia.com/gpu"
  int percentage = 100;   ///< of computing; one for all GPUs, since MPS has no other
  std::vector<Gpu> gpus;  ///< numbered so by the daemon
  bool operator==(const Spec&) const = default;
};

/// Memory and percentage that the shares stand for. Where GPUs are cut differently the least cut one counts, so that nobody has less
/// computing than a share.
Spec SpecOf(const device::SharedSet& set);

/// One line, the same for the same spec; and back, nothing where it is none. What ReadSpec reads stands in files and environments.
std::string WriteSpec(const Spec& spec);
std::optional<Spec> ReadSpec(std::string_view text);

/// "GPU-a,GPU-b"
std::string VisibleDevices(const Spec& spec);

/// As CUDA_MPS_PINNED_DEVICE_MEM_LIMIT has it: "0=10137M,1=8192M".
std::string MemoryLimits(const Spec& spec);

}  // namespace penstock::vendor::nvidia::mps
