// Parses the command line of a hook, in the form of nvidia-cdi-hook and nvidia-ctk (urfave/cli).
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::hook {

/// The flags of a hook: "--name value", "--name=value", also with a single dash.
class Arguments {
 public:
  /// kInvalidArgument, with the accepted flags, for a flag that is not in `names`, a flag without a
  /// value, and words without a flag.
  static base::Result<Arguments> Parse(std::span<const std::string> words,
                                       std::span<const std::string_view> names);

  /// The last value of a flag; empty if it was not given.
  std::string Text(std::string_view name) const;
  /// All values of a flag in order, each split at commas as those programs do, without duplicates.
  std::vector<std::string> List(std::string_view name) const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

/// A call of the program: the hook's name, and the hook's own arguments.
struct HookCall {
  std::optional<std::string> hook;  ///< none: no hook was named
  std::vector<std::string> words;
  bool help = false;
  bool version = false;
};

/// Splits the program's arguments. Before the hook's name it accepts flags (--debug, --quiet,
/// --config FILE: without effect), and "hook" as nvidia-ctk has it, whatever the name of the
/// program. kInvalidArgument for other flags.
base::Result<HookCall> ReadCall(std::span<const std::string> words);

}  // namespace penstock::hook
