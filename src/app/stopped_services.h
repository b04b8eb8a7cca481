// The services of the host that an agent stops while devices are divided, kept on disk until they
// run again: the next agent, or an uninstall, starts what this one cannot.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::app {

struct StoppedServices {
  std::string boot;                ///< id of the boot in which they were stopped
  std::vector<std::string> units;  ///< of systemd, in the order in which they were stopped
  bool operator==(const StoppedServices&) const = default;
};

std::string StoppedServicesPath(const std::string& state_dir);

std::string EncodeStoppedServices(const StoppedServices& stopped);
/// Errors: kFailedPrecondition where a newer version of the agent wrote the file, kDataLoss where
/// it is damaged.
base::Result<StoppedServices> DecodeStoppedServices(std::string_view text, std::string_view file);

/// Those of the previous agent; none where another boot has started what is to run, and where the
/// file is damaged or of a newer version (os::LoadKept). Blocks.
base::Result<StoppedServices> LoadStoppedServices(const std::string& state_dir,
                                                  const std::string& boot_id);

}  // namespace penstock::app
