#include "api/compat/nvidia/mig_hooks.h"

#include <algorithm>

#include "base/core/document.h"
#include "base/core/strings.h"
#include "base/yaml.h"

namespace penstock::api::compat {

namespace {

using base::MapReader;
using base::Problems;
using base::Value;

/// A text that a system call takes for an argument: no NUL.
bool IsWord(const std::string& text) { return text.find('\0') == std::string::npos; }

class HooksReader {
 public:
  explicit HooksReader(Problems& problems) : problems_(problems) {}

  MigHooks Read(const Value& document) {
    MigHooks hooks;
    MapReader top(document, "", problems_);
    top.Require("version");
    if (const auto version = top.String("version"); version && *version != "v1")
      top.Problem("version", "is \"" + *version + "\"; this program reads \"v1\"");
    if (const Value* named = top.Map("hooks")) {
      MapReader reader(*named, "hooks", problems_);
      for (const char* name : {kApplyStart, kPreApplyMode, kPreApplyConfig, kApplyExit})
        ReadList(reader, name, hooks);
      reader.Finish();
    }
    top.Finish();
    return hooks;
  }

 private:
  void ReadList(MapReader& reader, const char* name, MigHooks& hooks) {
    const Value* list = reader.List(name);
    if (list == nullptr) return;
    base::ForEachMap(*list, reader.Path(name), problems_,
                     [&](const Value& hook, const std::string& where) {
                       hooks[name].push_back(ReadHook(hook, where));
                     });
  }

  MigHook ReadHook(const Value& value, const std::string& where) {
    MigHook hook;
    MapReader reader(value, where, problems_);
    reader.Require("command");
    hook.command = reader.String("command").value_or("");
    if (reader.Has("command") && hook.command.empty()) reader.Problem("command", "is empty");
    hook.arguments = reader.Strings("args").value_or(std::vector<std::string>());
    hook.folder = reader.String("workdir").value_or("");
    if (const Value* variables = reader.Map("envs"))
      for (const auto& entry : *variables->map) ReadVariable(reader.Path("envs"), entry, hook);
    if (!IsWord(hook.command)) reader.Problem("command", "contains a NUL");
    if (!std::ranges::all_of(hook.arguments, IsWord)) reader.Problem("args", "contain a NUL");
    if (!IsWord(hook.folder)) reader.Problem("workdir", "contains a NUL");
    reader.Finish();
    return hook;
  }

  void ReadVariable(const std::string& where, const Value::Entry& entry, MigHook& hook) {
    const std::string place = where + "." + entry.key;
    const bool text = entry.value.kind == Value::Kind::kString;
    if (!text)
      problems_.Add(entry.value.mark, place + ": is " + std::string(Describe(entry.value.kind)) +
                                          " where a string is expected; write it in quotes");
    if (entry.key.empty() || entry.key.find('=') != std::string::npos || !IsWord(entry.key) ||
        !IsWord(entry.value.text))
      problems_.Add(entry.mark, place + ": is no variable");
    if (text) hook.environment[entry.key] = entry.value.text;
  }

  Problems& problems_;
};

}  // namespace

Result<MigHooks> ReadMigHooks(std::string_view text, std::string_view file) {
  Problems problems{std::string(file)};
  ASSIGN(const Value document, base::ParseYamlOrJson(text, problems));
  if (document.kind != Value::Kind::kMap)
    return Error(Code::kInvalidArgument, std::string(file) + ": is no hooks file of mig-parted");
  MigHooks hooks = HooksReader(problems).Read(document);
  if (!problems.empty()) return problems.ToError();
  return hooks;
}

}  // namespace penstock::api::compat
