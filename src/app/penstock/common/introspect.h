// Generates shell completion and the reference page from the definition of the command line. Runs
// no verb.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace penstock::app {

/// The subcommands, without deprecated ones, which belong to no group and are hidden in help.
std::vector<const CLI::App*> VerbsOf(const CLI::App& app);

/// Returns the help of this verb or program: CLI::App::help describes the verb that was given.
std::string HelpOf(const CLI::App& app, std::string prefix);

/// Returns a completion script for "bash", "zsh" or "fish"; empty for other shells.
std::string Completion(const CLI::App& app, const std::string& shell);

/// Returns what `kubectl_complete-penstock` prints for kubectl: words that can complete the last
/// one of `words` (possibly empty), one per line with a description after a tab, and last the
/// directive for the shell (cobra's: ":4" no files, ":0" files). Calls `nodes` only where a node
/// name is expected.
std::string CompleteForKubectl(const CLI::App& app, const std::vector<std::string>& words,
                               const std::function<std::vector<std::string>()>& nodes);

/// Returns the help of the program and of each verb as a Markdown page: docs/reference/cli.md.
std::string Markdown(const CLI::App& app);

}  // namespace penstock::app
