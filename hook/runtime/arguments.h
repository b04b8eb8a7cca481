// What an engine asks of its OCI runtime, as far as it concerns us: the command lines of runc and crun. Never checks them: the low-level
// runtime does, which gets them as they are.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace penstock::hook::runtime {

/// How the low-level runtime was told to log (runc(8), --log and --log-format): where an engine looks for the reason of a failure.
struct LogOptions {
  std::string path;  ///< empty: none
  bool json = false;
  bool debug = false;
};

struct Call {
  std::string command;   ///< "create"; empty: none
  std::string bundle;    ///< as it was given; empty: the working directory
  bool version = false;  ///< --version instead of a command
  LogOptions log;

  /// Whether a container is made of the bundle; all other commands are none of our business.
  bool Creates() const { return command == "create" || command == "run"; }
};

/// Reads the arguments after the program's own name. A container called "create" is no command, nor is a folder of that name.
Call ReadArguments(std::span<const std::string_view> arguments);

}  // namespace penstock::hook::runtime
