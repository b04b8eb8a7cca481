// Who is shown which command lines. They may hold passwords and tokens: `--hf-token=...`, or what Kubernetes expands into a container's
// arguments. Knows no protocol.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/report.h"
#include "api/samples.h"
#include "api/usage.h"

namespace penstock::api {

/// Somebody of this machine who asks.
struct Viewer {
  bool sees_all = false;  ///< root, and the user that the agent runs as
  std::string user;       ///< sees the command lines of this one
};

/// A command line as somebody else's is shown: its program (argv[0]) alone.
std::string ProgramOf(std::string_view command);

/// Leaves the program alone of each command line that is not the viewer's.
void HideCommands(const Viewer& viewer, Report& report);
void HideCommands(const Viewer& viewer, Samples& samples);
void HideCommands(const Viewer& viewer, std::vector<IdleHolder>& idle);

/// For readers of whom nothing is known: no command line and no process id stays, not even the agent's.
void HideProcesses(Report& report);

}  // namespace penstock::api
