// Parses the lines that amdgpu writes to the kernel's log. The text is untrusted.
#pragma once

#include <optional>
#include <string_view>

#include "device/dialect.h"
#include "device/model.h"

namespace penstock::backend::amd {

/// The evidence in the text of one record of the kernel's log, without the prefix of /dev/kmsg:
/// what amdgpu says of one GPU, whose PCI address begins the line, and kDriverLoaded, a line that
/// KFD writes each time it is loaded. The driver also writes names of programs, which these choose;
/// so a line counts by its beginning alone, and of its rest only names of rings and blocks are
/// kept. Nothing for any other line, such as those in which older kernels leave out the address.
std::optional<device::Evidence> ParseKernelLine(std::string_view line);

/// What such evidence means. Nothing in the log says that a fault is over: the driver also reports
/// success where the GPU does not work afterwards (ROCm #3766).
device::Verdict JudgeLine(const device::Evidence& evidence);

}  // namespace penstock::backend::amd
