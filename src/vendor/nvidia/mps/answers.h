// What nvidia-cuda-mps-control answers, read. The forms are not specified by NVIDIA; anything unexpected is no answer. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/core/quantity.h"

namespace penstock::vendor::nvidia::mps {

/// "25.0": a percentage above 0, up to 100.
std::optional<double> ReadPercentage(std::string_view answer);

/// "3G", "1000M", "0x140000000": a limit of memory. An empty answer, or 0, is no limit. The daemon says whole gigabytes from one on,
/// rounded down (535.261, 550.163): an answer that is what was `asked` for in its unit stands for that.
std::optional<base::Bytes> ReadMemory(std::string_view answer, base::Bytes asked = {});

/// Process ids between blanks and line ends; an empty answer names none. Nothing where any other word is among them. 0 stands for a process
/// of another pid namespace.
std::optional<std::vector<pid_t>> ReadPids(std::string_view answer);

/// An answer for people: one line, printable, at most 60 characters.
std::string Quote(std::string_view answer);

}  // namespace penstock::vendor::nvidia::mps
