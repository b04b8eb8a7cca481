// One container over CRI, as the kubelet would start it, and what it wrote.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::edge::engine::cri {

struct Errand {
  std::string socket;  ///< of the engine
  std::string image;   ///< of its store: nothing is pulled
  std::vector<std::string> command;
  std::string program;                   ///< of this machine, mounted read-only at the command's first word
  std::vector<std::string> cdi_devices;  ///< qualified names, in CRI's own field for them
};

/// Runs it to its end in a pod on the machine's own network, and returns what it wrote to its standard output. The pod is removed, whatever
/// came of it. Blocks, for `within` at most before the pod is removed. kDeadlineExceeded where it did not end; kUnknown where it failed;
/// else what the engine answered.
base::Result<std::string> RunErrand(const Errand& errand, base::Duration within);

/// What a container wrote to its standard output, by the kubelet's log files: "TIME stdout F text" a line, P where the line goes on. Pure.
std::string OutputOfLog(std::string_view log);

}  // namespace penstock::edge::engine::cri
