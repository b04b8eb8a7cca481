// Reads the command line that an engine passes to its OCI runtime (runc, crun), as far as this
// program needs it. Validates nothing: the low-level runtime receives the arguments unchanged and
// does that.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace penstock::hook::runtime {

/// The log options of the low-level runtime (runc(8), --log and --log-format). Engines read that
/// log for the reason of a failure.
struct LogOptions {
  std::string path;  ///< empty: none
  bool json = false;
  bool debug = false;
};

struct RuntimeCall {
  std::string command;   ///< "create"; empty: none
  std::string bundle;    ///< as given; empty: the working directory
  bool version = false;  ///< --version instead of a command
  LogOptions log;

  /// Whether the command creates a container from the bundle; other commands are passed through.
  bool Creates() const { return command == "create" || command == "run"; }
};

/// Reads the arguments after the program's own name. A container or folder named "create" is not
/// mistaken for the command.
RuntimeCall ReadArguments(std::span<const std::string_view> arguments);

}  // namespace penstock::hook::runtime
