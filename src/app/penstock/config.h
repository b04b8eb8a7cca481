// `penstock config check` and `show`. Needs no agent and changes nothing.
#pragma once

#include <string>

#include "app/penstock/verbs.h"

namespace penstock::app {

/// Prints all problems of a file ("-": standard input), or that there are none. Returns the exit status.
int CheckConfig(const std::string& file);

/// Prints what the file and the flags make together. Returns the exit status.
int ShowConfig(const Common& common);

}  // namespace penstock::app
