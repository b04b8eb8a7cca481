// Builds the commands that query, check and restart a container engine, and interprets their
// output. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "protocol/engine/engine_install.h"

namespace penstock::protocol::engine {

using CommandLine = std::vector<std::string>;

/// `containerd --version`.
CommandLine VersionCommand(const EngineInstall& install);

/// Returns major and minor of the first version in a text: "containerd
/// github.com/containerd/containerd v2.1.4 ..." → 2, 1. Nothing if there is none.
std::optional<std::pair<int, int>> ParseVersion(std::string_view answer);

/// Returns the command that prints the configuration in force, in the format of the engine's files.
/// Empty if the engine has no such command, or if `has_file` says that the file that the command
/// needs as an argument does not exist.
CommandLine EffectCommand(const EngineInstall& install, bool has_file);

/// Returns the command that fails if the engine cannot use its files. Empty if the engine has no
/// such command, or not in this version; docker has it from 23.0.
CommandLine CheckCommand(const EngineInstall& install, int major);

/// Returns the command that reports the state of the engine's parts once it listens. A program that
/// is not installed is no fault. Empty if listening is all that can be checked.
CommandLine HealthCommand(const EngineInstall& install);

/// Returns what is wrong according to the health command's answer. containerd starts without its
/// CRI plugin if it refuses the plugin's table.
std::optional<std::string> HealthProblem(const EngineInstall& install, int status,
                                         std::string_view answer);

/// `systemctl restart UNIT`, and the command that must precede it if the unit failed too often.
CommandLine RestartCommand(const EngineInstall& install);
CommandLine ResetFailedCommand(const EngineInstall& install);

/// Returns the last non-empty line of a program's output, for messages.
std::string LastLine(std::string_view output);

}  // namespace penstock::protocol::engine
