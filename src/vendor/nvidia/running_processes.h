// The processes on a GPU, as the driver lists them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "vendor/nvidia/questions.h"

namespace penstock::vendor::nvidia {

struct RunningProcess {
  std::optional<std::uint64_t> memory;  ///< nothing where the driver does not tell it
  bool graphics_only = true;            ///< in the list of those that draw, and in no other
};

/// Processes that compute, that draw, and that compute through MPS, each once, by pid.
std::map<std::int32_t, RunningProcess> AskRunningProcesses(Questions& questions);

}  // namespace penstock::vendor::nvidia
