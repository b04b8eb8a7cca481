// The command line of a hook, in the form that nvidia-cdi-hook and nvidia-ctk have (urfave/cli). Knows no hook.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::hook {

/// What a hook was called with: "--name value", "--name=value", also with one dash.
class Arguments {
 public:
  /// kInvalidArgument, with what is accepted, for a flag that is not among the names, one without a value, and words without a flag.
  static base::Result<Arguments> Parse(std::span<const std::string> words, std::span<const std::string_view> names);

  /// The last value of a flag; empty where it was not given.
  std::string Text(std::string_view name) const;
  /// All values of a flag in order, each divided at commas as those programs do; each once.
  std::vector<std::string> List(std::string_view name) const;

 private:
  std::map<std::string, std::vector<std::string>, std::less<>> values_;
};

/// A call of the program: which hook, and its own words.
struct Call {
  std::optional<std::string> hook;  ///< none: nothing was asked for
  std::vector<std::string> words;
  bool help = false;
  bool version = false;
};

/// Takes the program's words apart: flags before the hook's name (--debug, --quiet, --config FILE: accepted, without effect), and "hook"
/// before it as nvidia-ctk has it, whatever name the program was called by. kInvalidArgument for other flags.
base::Result<Call> ReadCall(std::span<const std::string> words);

}  // namespace penstock::hook
