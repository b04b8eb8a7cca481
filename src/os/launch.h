// The small step between posix_spawn and a program that is to outlive us, or to see what another process sees: it leaves our control group,
// gets a mount namespace of its own or enters the other's, perhaps another root, and becomes the program. For a program of ours that is one
// process with one thread; never for the agent itself.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/core/result.h"

namespace penstock::os {

struct LaunchOptions {
  std::string within;  ///< a process' folder ("/proc/1"): its mount namespace is entered before anything else; empty: ours
  std::string cgroup;  ///< group at the top of the unified hierarchy, made where it is missing; empty: stay. In v1 hierarchies: their top
  std::vector<std::pair<std::string, std::string>> binds;  ///< {what, where}: mounted in its namespace alone, in order
  std::string scratch;                                     ///< folder that is covered by an empty file system in memory first; empty: none
  std::string root;                                        ///< becomes its "/"; empty: ours
  std::vector<std::string> command;                        ///< looked for in PATH as it is there
};

/// The arguments that make `launcher`, whose main calls LaunchMain for the first argument kLaunchVerb, do this.
inline constexpr const char* kLaunchVerb = "launch";
std::vector<std::string> LaunchArguments(const std::string& launcher, const LaunchOptions& options);

/// Does it, with main's arguments; returns only where it fails (126, or 127 where there is no such program). What could not be done and was
/// not needed to go on (the group, the binds where there is no other root) is told on standard output, a line each: "launch: group:
/// REASON", "launch: mounts: REASON".
int LaunchMain(int argc, char** argv);

/// What such lines say: the reasons, empty where all went well.
struct LaunchRemarks {
  std::string group, mounts;
};
LaunchRemarks ReadLaunchRemarks(const std::string& output);

}  // namespace penstock::os
