// An intermediate step between posix_spawn and a program that must outlive its parent or see
// another process's files: leaves the parent's control group, creates a mount namespace or enters
// another process's, optionally changes the root, and executes the program. Runs in a
// single-threaded process of its own; never in the agent itself.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/core/result.h"

namespace penstock::os {

struct LaunchOptions {
  std::string within;  ///< a process's folder ("/proc/1") whose mount namespace is entered first;
                       ///< empty: keep this one
  std::string cgroup;  ///< group at the top of the unified hierarchy, created if missing; empty:
                       ///< stay. In v1 hierarchies: their top
  std::vector<std::pair<std::string, std::string>>
      binds;  ///< {source, target}: mounted only in the program's namespace, in order
  std::string
      scratch;  ///< folder that is first covered by an empty in-memory file system; empty: none
  std::string root;                  ///< becomes the program's "/"; empty: keep this one
  std::vector<std::string> command;  ///< searched for in PATH as seen in the new root
};

/// The arguments that make `launcher` do this. Its main must call LaunchMain if the first argument
/// is kLaunchVerb.
inline constexpr const char* kLaunchVerb = "launch";
std::vector<std::string> LaunchArguments(const std::string& launcher, const LaunchOptions& options);

/// Performs the launch with main's arguments; returns only if it fails (126, or 127 if there is no
/// such program). Steps that failed but are not essential (the group; the binds, if the root does
/// not change) are reported on standard output, one line each: "launch: group: REASON", "launch:
/// mounts: REASON".
int LaunchMain(int argc, char** argv);

/// The reasons in such lines; empty if all steps succeeded.
struct LaunchRemarks {
  std::string group, mounts;
};
LaunchRemarks ReadLaunchRemarks(const std::string& output);

}  // namespace penstock::os
