// Parses the answers of nvidia-cuda-mps-control. NVIDIA does not specify their form; anything
// unexpected is no answer. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/core/quantity.h"

namespace penstock::backend::nvidia::mps {

/// "25.0": a percentage above 0, up to 100. Nothing for any other text.
std::optional<double> ReadPercentage(std::string_view answer);

/// A memory limit: "3G", "1000M", "0x140000000". An empty answer or 0 means no limit. The daemon
/// reports limits of a gigabyte and more in whole gigabytes, rounded down (535.261, 550.163); an
/// answer that equals `requested` after rounding to the answer's unit counts as `requested`.
std::optional<base::Bytes> ReadMemory(std::string_view answer, base::Bytes requested = {});

/// Process ids separated by blanks and line ends; an empty answer names none. Nothing if the answer
/// contains any other word. 0 stands for a process of another pid namespace.
std::optional<std::vector<pid_t>> ReadPids(std::string_view answer);

/// An answer for people: one line, printable, at most 60 characters.
std::string Quote(std::string_view answer);

}  // namespace penstock::backend::nvidia::mps
