#include "hook/arguments.h"

#include <algorithm>

#include "base/core/strings.h"

namespace penstock::hook {
namespace {

struct Flag {
  std::string name;
  std::optional<std::string> value;
};

// Accepts "--name=value" and "-name"; nothing for a word that is not a flag.
std::optional<Flag> ReadFlag(const std::string& word) {
  if (word.size() < 2 || word[0] != '-') return std::nullopt;
  const std::string text = word.substr(word.starts_with("--") ? 2 : 1);
  const auto equals = text.find('=');
  if (equals == std::string::npos) return Flag{text, std::nullopt};
  return Flag{text.substr(0, equals), text.substr(equals + 1)};
}

std::string Accepted(std::span<const std::string_view> names) {
  std::vector<std::string> flags;
  for (const std::string_view name : names) flags.push_back("--" + std::string(name));
  return base::Join(flags, ", ");
}

Error Unknown(const Flag& flag, std::span<const std::string_view> names) {
  return {Code::kInvalidArgument,
          "unknown flag --" + flag.name + "; known flags: " + Accepted(names)};
}

}  // namespace

Result<Arguments> Arguments::Parse(std::span<const std::string> words,
                                   std::span<const std::string_view> names) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto flag = ReadFlag(words[i]);
    if (!flag)
      return Error(Code::kInvalidArgument,
                   "unexpected argument \"" + words[i] + "\"; known flags: " + Accepted(names));
    if (std::ranges::find(names, flag->name) == names.end()) return Unknown(*flag, names);
    if (!flag->value && i + 1 == words.size())
      return Error(Code::kInvalidArgument, "flag --" + flag->name + " needs a value");
    arguments.values_[flag->name].push_back(flag->value ? *flag->value : words[++i]);
  }
  return arguments;
}

std::string Arguments::Text(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? std::string() : found->second.back();
}

std::vector<std::string> Arguments::List(std::string_view name) const {
  std::vector<std::string> list;
  const auto found = values_.find(name);
  if (found == values_.end()) return list;
  for (const std::string& value : found->second) {
    for (std::string& part : base::Split(value, ',')) {
      if (std::ranges::find(list, part) == list.end()) list.push_back(std::move(part));
    }
  }
  return list;
}

Result<HookCall> ReadCall(std::span<const std::string> words) {
  static constexpr std::string_view kFlags[] = {"debug", "quiet", "config", "help", "version"};
  HookCall call;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto flag = ReadFlag(words[i]);
    if (!flag && words[i] == "hook") continue;
    if (!flag) {
      call.hook = words[i];
      call.words.assign(words.begin() + static_cast<std::ptrdiff_t>(i) + 1, words.end());
      return call;
    }
    if (flag->name == "config" && !flag->value) {
      ++i;
    } else if (flag->name == "help" || flag->name == "h") {
      call.help = true;
    } else if (flag->name == "version" || flag->name == "v") {
      call.version = true;
    } else if (flag->name != "debug" && flag->name != "d" && flag->name != "quiet" &&
               flag->name != "config") {
      return Unknown(*flag, kFlags);
    }
  }
  return call;
}

}  // namespace penstock::hook
