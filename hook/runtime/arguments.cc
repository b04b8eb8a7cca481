// runc parses options with urfave/cli: one dash or two, the value after a blank or "=".
#include "hook/runtime/arguments.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

namespace penstock::hook::runtime {
namespace {

/// Commands of runc 1.3 and crun 1.21. They decide whether the word after an unknown option is its
/// value or a command.
constexpr std::array<std::string_view, 19> kCommands = {
    "checkpoint", "create", "delete", "events", "exec",  "features", "help",
    "init",       "kill",   "list",   "mounts", "pause", "ps",       "restore",
    "resume",     "run",    "spec",   "start",  "state"};

/// Options with a value: those before the command, and those of create and run.
constexpr std::array<std::string_view, 16> kWithValue = {
    "root",           "log",    "log-format", "log-level",      "criu",     "rootless",
    "cgroup-manager", "bundle", "b",          "console-socket", "pid-file", "preserve-fds",
    "config",         "f",      "module",     "handler"};

template <std::size_t N>
bool Contains(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// "--log=x" is {"log", "x"}; nothing for a word that is not an option.
struct Option {
  std::string_view name;
  std::optional<std::string_view> value;
};

std::optional<Option> ParseOption(std::string_view word) {
  const auto start = word.find_first_not_of('-');
  if (start == 0 || start == std::string_view::npos) return std::nullopt;
  word.remove_prefix(start);
  const auto equals = word.find('=');
  if (equals == std::string_view::npos) return Option{word, std::nullopt};
  return Option{word.substr(0, equals), word.substr(equals + 1)};
}

/// crun also logs to "file:PATH"; engines do not read its log in the journal or syslog.
std::string LogPath(std::string_view value) {
  if (value.starts_with("journald:") || value.starts_with("syslog:")) return "";
  if (value.starts_with("file:")) value.remove_prefix(5);
  return std::string(value);
}

void Note(const Option& option, RuntimeCall& call) {
  const std::string_view value = option.value.value_or("");
  if (call.command.empty()) {
    if (option.name == "log") call.log.path = LogPath(value);
    if (option.name == "log-format") call.log.json = value == "json";
    if (option.name == "debug") call.log.debug = value != "false";
    if (option.name == "version" || option.name == "v") call.version = true;
  } else if (option.name == "bundle" || option.name == "b") {
    call.bundle = value;
  }
}

}  // namespace

RuntimeCall ReadArguments(std::span<const std::string_view> arguments) {
  RuntimeCall call;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--") break;
    auto option = ParseOption(arguments[i]);
    if (!option) {
      if (call.command.empty() && Contains(kCommands, arguments[i])) call.command = arguments[i];
      continue;
    }
    if (!option->value && Contains(kWithValue, option->name) && i + 1 < arguments.size())
      option->value = arguments[++i];
    Note(*option, call);
  }
  return call;
}

}  // namespace penstock::hook::runtime
