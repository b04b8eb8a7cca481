// docker's `--gpus` in a container that a plain runtime starts: refused, since a hook comes too late to open devices.
#pragma once

#include <string_view>

#include "base/core/result.h"

namespace penstock::hook {

/// What dockerd (and podman by hooks.d) calls as `nvidia-container-runtime-hook prestart`, with the container's state: by then its device
/// rules are set and its mounts made. penstock-runtime takes the call out of the containers that it gives devices to, so whoever comes
/// here and asks for devices would start without them: kFailedPrecondition, with the remedy. A container that asks for none is let
/// through. kInvalidArgument and errno's errors where state or config.json cannot be read, which stop the container as well.
base::Status CheckPrestart(std::string_view state);

}  // namespace penstock::hook
