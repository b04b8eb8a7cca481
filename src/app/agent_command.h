// The command line of penstock-agent.
#pragma once

#include <string>

#include "app/command/verb.h"
#include "app/options.h"

namespace penstock::app {

struct AgentCommandLine {
  Settings settings;
  bool no_wait = false;  ///< fail if another agent runs, instead of waiting for its lock
  bool verbose = false;
  std::string worker;  ///< path of the worker program; empty: beside this program
};

/// The definition, without what it runs. `line` must outlive the parsing.
command::Verb AgentCommand(AgentCommandLine& line);

}  // namespace penstock::app
