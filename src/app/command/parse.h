// Parses a command line by its definition, and runs the verb. The only user of CLI11.
#pragma once

#include <string>
#include <vector>

#include "app/command/help.h"
#include "app/command/output.h"
#include "app/command/verb.h"
#include "base/core/result.h"

namespace penstock::app::command {

/// What the words of a command line ask for. The targets of the options have their values.
struct Parsed {
  Way way;               ///< to the verb
  bool help = false;     ///< the user asked for help on it
  bool version = false;  ///< the user asked for the version of the program
  Output output;         ///< -o, --no-headers, -w
};

/// Parses the words after the program's name. kInvalidArgument: the message names program and
/// verb, what is wrong, and where to read more. Not thread-safe, because it writes the targets.
base::Result<Parsed> Parse(const Verb& program, std::vector<std::string> words);

/// Parses and runs: prints help, the version, errors or the output of the verb. `output` gets what
/// the verb has to know of -o before it runs. Returns the exit status. Blocks.
int Run(const Verb& program, std::vector<std::string> words, Output& output);

}  // namespace penstock::app::command
