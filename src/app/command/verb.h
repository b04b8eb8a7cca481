// The definition of a command line as data. The parser, help, completions, man pages and the
// reference page are made from it. Contains no verb of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::app::command {

/// Receives what the user gave: a flag sets true, a list receives every value, a function is called
/// with each value, after the whole command line was parsed.
using OptionTarget = std::variant<bool*, std::string*, std::int64_t*, std::vector<std::string>*,
                                  std::function<void(const std::string&)>>;

struct Option {
  std::string names;       ///< "-o,--output"; without dashes an argument: "FILE"
  OptionTarget target;     ///< outlives the parsing
  std::string value = {};  ///< what help calls the value: "FILE"; empty for flags and arguments
  std::string help = {};   ///< one sentence without a period; the default value in brackets
  std::vector<std::string> choices = {};  ///< the only values that are accepted
  bool any_case = false;                  ///< the choices are accepted in upper and lower case
  /// Returns what is wrong with a value; empty: nothing.
  std::function<std::string(const std::string&)> check = nullptr;
  bool separated = false;       ///< a list: one word may have several values, separated by commas
  bool required = false;        ///< of an argument
  bool hidden = false;          ///< is in no help
  bool value_optional = false;  ///< the value may be absent, which is the value ""
  bool* given = nullptr;        ///< becomes true where the user gave the option
  std::vector<std::string> excludes = {};  ///< options that must not be given, too: "--by"
  std::vector<std::string> needs = {};     ///< options that must be given, too
  std::string environment = {};            ///< variable that is read where the option is not given
  std::string group = {};                  ///< heading in help; empty: "Options"

  Option OneOf(std::vector<std::string> values) &&;
  Option InAnyCase() &&;
  Option Checked(std::function<std::string(const std::string&)> function) &&;
  Option Separated() &&;
  Option Required() &&;
  Option Hidden() &&;
  Option ValueOptional(bool optional = true) &&;
  Option Given(bool* becomes) &&;
  Option Excludes(std::vector<std::string> others) &&;
  Option Needs(std::vector<std::string> others) &&;
  Option Environment(std::string variable) &&;
  Option Group(std::string heading) &&;

  bool is_argument() const { return !names.starts_with("-"); }
  bool is_flag() const { return value.empty() && std::holds_alternative<bool*>(target); }
};

/// An option without a value, one with a value, and an argument. The setters above complete them.
Option Flag(std::string names, bool* target, std::string help = "");
Option Value(std::string names, OptionTarget target, std::string value, std::string help = "");
Option Argument(std::string name, OptionTarget target, std::string help);

/// The output of a verb, and its exit status.
struct Shown {
  std::string text;
  int status = 0;

  Shown(std::string t, int s = 0) : text(std::move(t)), status(s) {}
};

/// What -o name prints: "device/GPU-1" for each value of a path in the verb's JSON.
struct NamePath {
  std::string_view kind;  ///< empty: the value alone
  std::string_view path;  ///< in the notation of -o jsonpath: ".devices[*].id"
};

struct Verb {
  std::string name;
  std::string summary;        ///< one line without a period
  std::string usage = {};     ///< follows "[OPTIONS]"; empty: the arguments
  std::string examples = {};  ///< lines, as a user types them
  std::string details =
      {};  ///< paragraphs between blank lines; lines that begin with a blank stay as they are
  std::string exit_status = {};  ///< "0 shown, 1 no agent responds"
  std::vector<Option> options = {};
  std::vector<Verb> verbs = {};
  std::vector<std::string> words = {};  ///< arguments that shells offer
  /// Options of the program that help lists here; the others are accepted, too.
  std::vector<std::string> shares = {};
  std::vector<std::string> formats = {};  ///< values of -o, the default first; empty: no -o
  NamePath names = {};                    ///< where the formats contain "name"
  bool watch = false;                     ///< accepts -w
  base::Duration watch_interval = std::chrono::seconds(1);
  /// Receives the words after the options, which are not parsed: the command of `run`.
  std::vector<std::string>* command = nullptr;
  /// Returns what is wrong with the arguments: a usage error. Called before `show` and `run`.
  std::function<base::Status()> check = nullptr;
  /// One of the two performs the verb. `show` returns a table or, where Output::json() holds, JSON.
  std::function<base::Result<Shown>()> show = nullptr;
  std::function<int()> run = nullptr;  ///< returns the exit status
  bool hidden = false;                 ///< a deprecated name
  std::string version = {};  ///< of a program: what its --version prints; empty: name and version
};

/// The exit status of all verbs except `run`, whose own failures are those of env(1).
enum Exit : int {
  kDone = 0,
  kFailed = 1,
  kUsageError = 2,
  kNo = 3,  ///< the answer to a question of the user is no: status --check
};

/// The formats of a verb that has JSON and a table; "wide" where it has more columns.
std::vector<std::string> TableFormats();
std::vector<std::string> WideFormats();
/// The formats of a verb that has JSON and names no objects.
std::vector<std::string> PlainFormats();

/// "--output", "-o" for "-o,--output".
std::vector<std::string> NamesOf(const Option& option);

}  // namespace penstock::app::command
