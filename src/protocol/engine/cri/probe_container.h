// Runs one container over CRI, as the kubelet would start it, and returns its output.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::protocol::engine::cri {

struct ProbeContainer {
  std::string socket;  ///< of the engine
  std::string image;   ///< in the engine's store: nothing is pulled
  std::vector<std::string> command;
  std::string
      program;  ///< of this machine, mounted read-only at the path of the command's first word
  std::vector<std::string> cdi_devices;  ///< qualified names, passed in CRI's own field for them
};

/// Runs the container to its end in a pod on the machine's own network, and returns its standard
/// output. The pod is removed in any case. Blocks, for at most `within` before the pod is removed.
/// kDeadlineExceeded if the container did not end; kUnknown if it failed; else the engine's error.
base::Result<std::string> RunContainer(const ProbeContainer& container, base::Duration within);

/// Returns a container's standard output from its log in the kubelet's format: "TIME stdout F text"
/// per line, P if the line continues. Pure.
std::string OutputOfLog(std::string_view log);

}  // namespace penstock::protocol::engine::cri
