// Runs the operator on one loop: the connection to the API server, the election, and the pages.
#pragma once

#include "app/operator/command_line.h"

namespace penstock::app {

/// Runs on the calling thread until SIGTERM or SIGINT. Returns the exit status. An API server that
/// does not respond never ends it.
int RunOperator(const OperatorCommandLine& line);

}  // namespace penstock::app
