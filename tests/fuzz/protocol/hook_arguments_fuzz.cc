// Fuzzes the command lines of the hook and of the runtime, which a CDI specification's author or an
// engine wrote. The input is a sequence of words separated by NUL.
#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../oracle.h"
#include "hook/arguments.h"
#include "hook/runtime/arguments.h"

namespace {

using namespace penstock;
using fuzz::Require;
using Words = std::vector<std::string>;

constexpr std::array<std::string_view, 3> kNames = {"link", "folder", "container-spec"};

void CheckFlags(const Words& words) {
  const auto arguments = hook::Arguments::Parse(words, kNames);
  if (!arguments.ok()) {
    Require(arguments.error().code() == base::Code::kInvalidArgument &&
            !arguments.error().message().empty());
    return;
  }
  Words same;  // the same flags in the other form
  for (const std::string_view name : kNames) {
    const Words list = arguments->List(name);
    Require(std::set<std::string>(list.begin(), list.end()).size() == list.size());
    for (const std::string& part : list) {
      Require(part.find(',') == std::string::npos);
      same.insert(same.end(), {"-" + std::string(name), part});
    }
    for (const std::string& part : base::Split(arguments->Text(name), ','))
      Require(list.empty() || std::find(list.begin(), list.end(), part) != list.end());
  }
  const auto again = hook::Arguments::Parse(same, kNames);
  Require(again.ok());
  for (const std::string_view name : kNames) Require(again->List(name) == arguments->List(name));
}

void CheckHookCall(const Words& words) {
  const auto call = hook::ReadCall(words);
  if (!call.ok())
    return Require(call.error().code() == base::Code::kInvalidArgument &&
                   !call.error().message().empty());
  if (!call->hook) return Require(call->words.empty());
  Require(call->words.size() < words.size() &&
          std::equal(call->words.rbegin(), call->words.rend(), words.rbegin()));
  Require(words[words.size() - call->words.size() - 1] == *call->hook && *call->hook != "hook");
  Words with_flag = {"--debug", "hook"};
  with_flag.insert(with_flag.end(), words.begin(), words.end());
  const auto again = hook::ReadCall(with_flag);
  Require(again.ok() && again->hook == call->hook && again->words == call->words);
}

bool EndsAWord(const std::string& text, const Words& words) {
  return text.empty() || std::any_of(words.begin(), words.end(),
                                     [&](const std::string& word) { return word.ends_with(text); });
}

hook::runtime::RuntimeCall ReadRuntimeCall(const Words& words) {
  const std::vector<std::string_view> views(words.begin(), words.end());
  return hook::runtime::ReadArguments(views);
}

void CheckRuntimeCall(const Words& words) {
  const auto call = ReadRuntimeCall(words);
  Require(EndsAWord(call.bundle, words) && EndsAWord(call.log.path, words));
  Require(call.command.empty() ||
          std::find(words.begin(), words.end(), call.command) != words.end());
  if (call.command.empty()) {
    Require(call.bundle.empty() && !call.Creates());
    return;
  }
  if (std::find(words.begin(), words.end(), "--") != words.end()) return;
  // The last --bundle wins, in each form; "x" is the value of an option that still lacks one.
  for (const Words& more : {Words{"x", "--bundle", "/b"}, Words{"x", "--bundle=/b"},
                            Words{"x", "-b", "/b", "id"}, Words{"x", "-b=/b"}}) {
    Words longer = words;
    longer.insert(longer.end(), more.begin(), more.end());
    const auto again = ReadRuntimeCall(longer);
    Require(again.bundle == "/b" && again.command == call.command &&
            again.log.path == call.log.path);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Words words = fuzz::Parts(data, size);
  CheckFlags(words);
  CheckHookCall(words);
  CheckRuntimeCall(words);
  return 0;
}
