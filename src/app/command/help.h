// Renders a command line's definition as help, man pages and the reference page.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/command/verb.h"

namespace penstock::app::command {

/// The verbs on the way to one: {&program, &cdi, &generate}. Never empty.
using Way = std::vector<const Verb*>;

/// "penstock cdi generate".
std::string NameOf(const Way& way);

/// Follows words to a verb, hidden ones included, as far as they name verbs.
Way Follow(const Verb& program, const std::vector<std::string>& words);

/// Calls a function for the program and for each verb that is not hidden, in order.
void ForEachVerb(const Verb& program, const std::function<void(const Way&)>& function);

/// The options that help shows for a verb: its own, then those that it shares with the program,
/// then -o, --no-headers, -w and --help where it has them.
std::vector<Option> ShownOptions(const Way& way);

/// The help of a verb, at most `columns` wide except for examples; at least 40.
std::string HelpOf(const Way& way, std::size_t columns);

/// The columns of a terminal, at most 100; 100 where the descriptor is none.
std::size_t HelpColumns(int fd);

/// The help of all verbs as a Markdown page: docs/reference/cli.md.
std::string Markdown(const Verb& program);

/// Man pages, by their file names: "penstock.1", "penstock-cdi-generate.1". `section`: 1 for
/// commands, 8 for daemons.
std::map<std::string, std::string> ManPages(const Verb& program, int section);

}  // namespace penstock::app::command
