// The commands by which an engine is asked, checked and started anew, and what their answers mean. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "edge/engine/site.h"

namespace penstock::edge::engine {

using Arguments = std::vector<std::string>;

/// `containerd --version`.
Arguments VersionCommand(const Site& site);

/// Major and minor of the first version in a text: "containerd github.com/containerd/containerd v2.1.4 ..." → 2, 1. Nothing: there is none.
std::optional<std::pair<int, int>> ParseVersion(std::string_view answer);

/// What prints the configuration in force, as files have it. Empty: this engine has no such command, or `has_file` says that its file,
/// which it would have to be told, is not there.
Arguments EffectCommand(const Site& site, bool has_file);

/// What fails where the files cannot be used. Empty: this engine has no such command, or not in this version; docker has it from 23.0.
Arguments CheckCommand(const Site& site, int major);

/// What says how the engine's parts are, once it listens; not being there is no fault. Empty: listening is all that can be asked.
Arguments HealthCommand(const Site& site);

/// What is wrong by the health command's answer. containerd starts without its CRI plugin where that one's table is refused.
std::optional<std::string> Illness(const Site& site, int status, std::string_view answer);

/// `systemctl restart UNIT`, and what must come before it where the unit failed too often.
Arguments RestartCommand(const Site& site);
Arguments ForgiveCommand(const Site& site);

/// The last line of a program's output that says something: what a message quotes.
std::string LastLine(std::string_view output);

}  // namespace penstock::edge::engine
