// Hides command lines from viewers who may not see them. Command lines may contain passwords and
// tokens: `--hf-token=...`, or values that Kubernetes expands into a container's arguments.
// Independent of any protocol.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/report.h"
#include "api/samples.h"
#include "api/usage.h"

namespace penstock::api {

/// A user of this machine who requests a report.
struct Viewer {
  bool sees_all = false;  ///< true for root and for the user that the agent runs as
  std::string user;       ///< name of the user, who sees their own command lines
};

/// Returns the program (argv[0]) of a command line: the part of another user's command line that is
/// shown.
std::string ProgramOf(std::string_view command);

/// Reduces each command line that does not belong to the viewer to its program.
void HideCommands(const Viewer& viewer, Report& report);
void HideCommands(const Viewer& viewer, Samples& samples);
void HideCommands(const Viewer& viewer, std::vector<IdleHolder>& idle);

/// For readers whose identity is unknown: removes all command lines and all process ids, the
/// agent's included.
void HideProcesses(Report& report);

}  // namespace penstock::api
