// The parameters of a control daemon: its GPUs in order, and the limits to enforce. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/quantity.h"
#include "device/sharing.h"

namespace penstock::backend::nvidia::mps {

struct ServerSpec {
  struct Gpu {
    std::string id;
    int shares = 1;
    base::Bytes memory;  ///< limit per process, in whole MiB
    bool is_mig_device() const;
    bool operator==(const Gpu&) const = default;
  };
  std::string set;        ///< "nvidia.com/gpu"; the UUID of a MIG device
  int percentage = 100;   ///< of compute; one for all GPUs, since MPS has no other
  std::vector<Gpu> gpus;  ///< in the order in which the daemon numbers them; or one MIG device
  bool operator==(const ServerSpec&) const = default;
};

/// Computes memory and percentage from the shares. If the GPUs have different numbers of shares,
/// the smallest number decides, so that no client has less compute than its share.
ServerSpec SpecOf(const device::SharedSet& set);

/// Writes a spec as one line, always the same for the same spec; ReadSpec parses it and returns
/// nothing for any other text. The lines are kept in files and environments.
std::string WriteSpec(const ServerSpec& spec);
std::optional<ServerSpec> ReadSpec(std::string_view text);

/// "GPU-a,GPU-b"
std::string VisibleDevices(const ServerSpec& spec);

/// In the form of CUDA_MPS_PINNED_DEVICE_MEM_LIMIT: "0=10137M,1=8192M".
std::string MemoryLimits(const ServerSpec& spec);

}  // namespace penstock::backend::nvidia::mps
