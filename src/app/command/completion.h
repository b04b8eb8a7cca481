// Renders completion for shells from a command line's definition.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "app/command/verb.h"

namespace penstock::app::command {

/// Returns a completion script for "bash", "zsh" or "fish"; empty for other shells.
std::string Completion(const Verb& program, const std::string& shell);

/// Returns what `kubectl_complete-penstock` prints for kubectl: words that can complete the last
/// one of `words` (possibly empty), one per line with a description after a tab, and last the
/// directive for the shell (cobra's: ":4" no files, ":0" files). Calls `nodes` only where a node
/// name is expected.
std::string CompleteForKubectl(const Verb& program, const std::vector<std::string>& words,
                               const std::function<std::vector<std::string>()>& nodes);

}  // namespace penstock::app::command
