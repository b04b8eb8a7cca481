// The command line told from its own definition: completion for shells, and the reference page. Runs no verb.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace penstock::app {

/// A completion script for "bash", "zsh" or "fish"; empty for another shell.
std::string Completion(const CLI::App& app, const std::string& shell);

/// What kubectl asks `kubectl_complete-penstock` for: words that can stand where the last one of `words` (perhaps empty) begins, a line
/// each with what they mean behind a tab, and last what the shell shall do (cobra's directive: ":4" no files, ":0" files). `nodes` is asked
/// only where a node's name is wanted.
std::string CompleteForKubectl(const CLI::App& app, const std::vector<std::string>& words,
                               const std::function<std::vector<std::string>()>& nodes);

/// The help of the program and of each verb, as a page in Markdown: docs/reference/cli.md.
std::string Markdown(const CLI::App& app);

}  // namespace penstock::app
