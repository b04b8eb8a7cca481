// The processes on a GPU, as the driver lists them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "vendor/nvidia/questions.h"

namespace penstock::vendor::nvidia {

/// Memory by process; nothing where the driver does not tell it. Processes that compute, that draw, and that do so through MPS, each once.
std::map<std::int32_t, std::optional<std::uint64_t>> AskRunningProcesses(Questions& questions);

}  // namespace penstock::vendor::nvidia
