// Refuses docker's `--gpus` in a container that a plain runtime starts, since a hook runs too late
// to give access to devices.
#pragma once

#include <string_view>

#include "base/core/result.h"

namespace penstock::hook {

/// Handles `nvidia-container-runtime-hook prestart`, which dockerd (and podman through hooks.d)
/// calls with the container's state after its device rules are set and its mounts made.
/// penstock-runtime removes this hook from containers that it gives devices to, so a container that
/// still calls it and requests devices would start without them: kFailedPrecondition, with the
/// remedy. A container that requests none is accepted. kInvalidArgument and errors by errno if
/// state or config.json cannot be read; they stop the container as well.
base::Status CheckPrestart(std::string_view state);

}  // namespace penstock::hook
