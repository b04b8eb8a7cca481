// The command line told from its own definition: completion for shells, and the reference page. Runs no verb.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace penstock::app {

/// A completion script for "bash", "zsh" or "fish"; empty for another shell.
std::string Completion(const CLI::App& app, const std::string& shell);

/// The help of the program and of each verb, as a page in Markdown: docs/reference/cli.md.
std::string Markdown(const CLI::App& app);

}  // namespace penstock::app
