// Plans changes for containerd: finds the file and the table that decide
// (docs/man/containerd-config.toml.5.md, docs/cri/config.md; the merge of imports as observed on
// 1.6, 1.7, 2.0 and 2.1).
#include <algorithm>

#include <fnmatch.h>

#include "base/core/strings.h"
#include "protocol/engine/apply/desired_config.h"
#include "protocol/engine/text/spelling.h"

namespace penstock::protocol::engine::internal {
namespace {

using base::Value;

constexpr char kCri1[] = "cri", kCri2[] = "io.containerd.grpc.v1.cri",
               kCri3[] = "io.containerd.cri.v1.runtime";
constexpr std::int64_t kNewestVersion = 4;
constexpr char kRuncType[] = "io.containerd.runc.v2", kOldShim[] = "io.containerd.runtime.v1.linux";
// CDI's annotations must reach the runtime, and the engine passes on only those annotations that
// its configuration names.
constexpr char kAnnotations[] = "cdi.k8s.io/*";

Path Below(const std::string& section, const Path& rest) {
  Path path = {"plugins", section};
  path.insert(path.end(), rest.begin(), rest.end());
  return path;
}

/// Returns the name of the CRI plugin's table, which the configuration's version determines; except
/// that containerd 2 also accepts the newer name in a version 2.
std::string SectionOf(const Value& document, std::int64_t version) {
  if (version <= 1) return kCri1;
  if (version >= 3) return kCri3;
  const bool newer = FindAt(document, {"plugins", kCri3}) != nullptr &&
                     FindAt(document, {"plugins", kCri2}) == nullptr;
  return newer ? kCri3 : kCri2;
}

base::Result<std::int64_t> VersionOf(const EngineFacts& facts, const Value& document) {
  const Value* version = document.Find("version");
  // If the file names no version, containerd 1 assumes version 1, containerd 2 its own.
  const bool newer = AtLeast(facts, 2, 0) || FindAt(document, {"plugins", kCri3}) != nullptr;
  if (version == nullptr) return newer ? 3 : facts.main.text ? 1 : 2;
  if (version->kind == Value::Kind::kInt && version->integer == 1 && AtLeast(facts, 2, 0))
    return Error(Code::kFailedPrecondition,
                 facts.main.path +
                     " has configuration version 1, whose plugins containerd 2 silently ignores: "
                     "convert it with `containerd config migrate` first");
  if (version->kind == Value::Kind::kInt && version->integer >= 1 &&
      version->integer <= kNewestVersion)
    return version->integer;
  return Error(Code::kFailedPrecondition,
               facts.main.path + ": configuration version " + Spell(*version) +
                   " is not supported (1 to 4 are); the file is not changed");
}

/// Returns the table of runtimes in force or, if the engine was not asked, of the files.
const Value* Runtimes(const Containerd& containerd) {
  const Path below = {"containerd", "runtimes"};
  if (const Value* found = FindAt(containerd.effective, Below(containerd.effective_section, below)))
    return found;
  return FindAt(containerd.main, Below(containerd.section, below));
}

/// Returns the runtime whose settings ours copies: the default one, or a well-known one if the
/// default is ours.
const Value* Model(const EngineFacts& facts, const Containerd& containerd,
                   const DesiredConfig& desired) {
  const Value* runtimes = Runtimes(containerd);
  if (runtimes == nullptr) return nullptr;
  const Path below = {"containerd", "default_runtime_name"};
  const Value* by_default =
      FindAt(containerd.effective, Below(containerd.effective_section, below));
  if (by_default == nullptr) by_default = FindAt(containerd.main, Below(containerd.section, below));
  for (const std::string& name : {by_default == nullptr ? std::string() : by_default->text,
                                  std::string("runc"), std::string("crun")}) {
    if (HasHandler(desired, name) || HasHandler(facts.standing, name)) continue;
    if (const Value* runtime = runtimes->Find(name)) return runtime;
  }
  return nullptr;
}

void Replace(std::vector<Setting>& settings, Setting wanted) {
  const auto same = [&wanted](const Setting& setting) { return setting.path == wanted.path; };
  const auto found = std::ranges::find_if(settings, same);
  if (found == settings.end()) {
    settings.push_back(std::move(wanted));
  } else {
    found->value = std::move(wanted.value);
  }
}

std::vector<Setting> RuntimeSettings(const RuntimeHandler& handler, const Value* model) {
  const Path top = {"containerd", "runtimes", handler.name};
  const auto at = [&top](const Path& rest) {
    Path path = top;
    path.insert(path.end(), rest.begin(), rest.end());
    return path;
  };
  std::vector<Setting> settings = CopyOf(model, top);
  const Value* type = model == nullptr ? nullptr : model->Find("runtime_type");
  const std::string runtime_type = type == nullptr || type->text.empty() ? kRuncType : type->text;
  Replace(settings, {at({"runtime_type"}), Text(runtime_type)});
  std::vector<std::string> annotations;
  if (const Value* given = model == nullptr ? nullptr : model->Find("container_annotations");
      given != nullptr && given->list)
    for (const Value& one : *given->list) annotations.push_back(one.text);
  if (std::ranges::find(annotations, kAnnotations) == annotations.end())
    annotations.push_back(kAnnotations);
  Replace(settings, {at({"container_annotations"}), Texts(annotations)});
  for (Setting& setting :
       CopyOf(model == nullptr ? nullptr : model->Find("options"), at({"options"})))
    settings.push_back(std::move(setting));
  Replace(settings, {at({"options", runtime_type == kOldShim ? "Runtime" : "BinaryName"}),
                     Text(handler.path)});
  return settings;
}

bool IsTrue(const Value& document, const std::string& section, const Path& below) {
  const Value* value = FindAt(document, Below(section, below));
  return value != nullptr && value->kind == Value::Kind::kBool && value->boolean;
}

/// Returns whether CDI is on without our settings.
bool HasCdi(const EngineFacts& facts, const Containerd& containerd) {
  const auto is_cdi = [](const Path& key) { return key.back() == "enable_cdi"; };
  if (std::ranges::any_of(facts.written, is_cdi)) return false;
  if (facts.effective)
    return IsTrue(containerd.effective, containerd.effective_section, {"enable_cdi"});
  const Value* enabled = FindAt(containerd.main, Below(containerd.section, {"enable_cdi"}));
  return enabled != nullptr ? enabled->boolean : AtLeast(facts, 2, 0);
}

base::Result<const SourceFile*> LastFileWith(const EngineFacts& facts, const std::string& section) {
  const SourceFile* last = &facts.main;
  for (const SourceFile& file : facts.imported) {
    if (!file.text) continue;
    ASSIGN(const Value document, Read(FileFormat::kToml, *file.text, file.path));
    if (FindAt(document, {"plugins", section}) != nullptr) last = &file;
  }
  return last;
}

/// Returns whether the main file imports the drop-in; patterns are relative to its folder.
bool Imports(const EngineFacts& facts, const Value& main) {
  const Value* imports = main.Find("imports");
  if (imports == nullptr || !imports->list) return false;
  return std::ranges::any_of(*imports->list, [&facts](const Value& pattern) {
    const std::string path = pattern.text.starts_with('/')
                                 ? pattern.text
                                 : base::FolderOf(facts.main.path) + "/" + pattern.text;
    return ::fnmatch(path.c_str(), facts.drop_in.path.c_str(), FNM_PATHNAME) == 0;
  });
}

/// containerd 1 replaces a plugin's whole table by an imported file's, and 2.0 drops imports of
/// version 2 (containerd#5837). With these, a drop-in does harm if another file has such a table.
base::Result<bool> TakesDropIn(const EngineFacts& facts, const Containerd& containerd) {
  if (facts.drop_in.path.empty()) return false;
  if (facts.style == ConfigStyle::kMerged || (AtLeast(facts, 2, 1) && containerd.version >= 2))
    return true;
  if (!facts.drop_in_wanted) return false;
  ASSIGN(const SourceFile* last, LastFileWith(facts, containerd.section));
  const bool alone =
      last->path == facts.drop_in.path ||
      (last == &facts.main && FindAt(containerd.main, {"plugins", containerd.section}) == nullptr);
  if (alone && Imports(facts, containerd.main)) return true;
  return Error(Code::kFailedPrecondition,
               "this containerd would replace the whole table plugins." +
                   TomlKey(containerd.section) + " of " + last->path + " with that of " +
                   facts.drop_in.path +
                   ": omit --drop-in-config to edit the one file where needed");
}

/// A new file of ours names its version, which is the main file's.
void AddVersion(const SourceFile& file, std::int64_t number, std::vector<Setting>& settings) {
  if (file.text) return;
  Value version;
  version.kind = Value::Kind::kInt;
  version.text = std::to_string(number);
  settings.insert(settings.begin(), {{"version"}, std::move(version)});
}

base::Status AddDropIn(Goal& goal, const EngineFacts& facts, const Containerd& containerd,
                       std::vector<Setting> settings) {
  AddVersion(facts.drop_in, containerd.version, settings);
  TRY(AddTarget(goal, FileFormat::kToml, facts.drop_in, settings));
  if (facts.style == ConfigStyle::kMerged || Imports(facts, containerd.main)) return {};
  std::vector<std::string> imports;
  if (const Value* given = containerd.main.Find("imports"); given != nullptr && given->list)
    for (const Value& one : *given->list) imports.push_back(one.text);
  imports.push_back(base::FolderOf(facts.drop_in.path) + "/*.toml");
  goal.may_change.push_back({"imports"});
  return AddTarget(goal, FileFormat::kToml, facts.main, {{{"imports"}, Texts(imports)}});
}

/// containerd 1 has only the runtimes that its files name, as soon as they name one.
void KeepRuntimes(const EngineFacts& facts, const Containerd& containerd, const Value& document,
                  std::vector<Setting>& settings) {
  const Path below = {"containerd", "runtimes"};
  if (AtLeast(facts, 2, 0) || FindAt(document, Below(containerd.section, below)) != nullptr) return;
  std::vector<Setting> kept;
  const Value* runtimes = FindAt(containerd.effective, Below(containerd.effective_section, below));
  if (runtimes == nullptr || !runtimes->map) {
    kept.push_back({{"containerd", "runtimes", "runc", "runtime_type"}, Text(kRuncType)});
  } else {
    for (const Value::Entry& runtime : *runtimes->map) {
      if (HasHandler(facts.standing, runtime.key)) continue;
      const Path top = {"containerd", "runtimes", runtime.key};
      Path options = top;
      options.emplace_back("options");
      for (Setting& setting : CopyOf(&runtime.value, top)) kept.push_back(std::move(setting));
      for (Setting& setting : CopyOf(runtime.value.Find("options"), options))
        kept.push_back(std::move(setting));
    }
  }
  for (Setting& setting : kept) {
    setting.path = Below(containerd.section, setting.path);
    const auto same = [&setting](const Setting& one) { return one.path == setting.path; };
    if (std::ranges::none_of(settings, same)) settings.push_back(std::move(setting));
  }
}

/// Returns whether the CRI plugin is disabled, as in docker's packages of containerd: then no
/// program reads its settings.
bool IsDisabled(const Value& main, const std::string& section) {
  const Value* disabled = main.Find("disabled_plugins");
  if (disabled == nullptr || !disabled->list) return false;
  const auto same = [&section](const Value& plugin) {
    return plugin.text == kCri1 || plugin.text == kCri2 || plugin.text == section;
  };
  return std::ranges::any_of(*disabled->list, same);
}

}  // namespace

base::Result<Containerd> ReadContainerd(const EngineFacts& facts) {
  Containerd containerd;
  ASSIGN(containerd.main, Read(FileFormat::kToml, facts.main.text.value_or(""), facts.main.path));
  ASSIGN(containerd.version, VersionOf(facts, containerd.main));
  containerd.section = SectionOf(containerd.main, containerd.version);
  if (!facts.effective) return containerd;
  ASSIGN(containerd.effective, Read(FileFormat::kToml, *facts.effective,
                                    "the configuration that " + facts.name + " reports"));
  const bool newer =
      AtLeast(facts, 2, 0) || FindAt(containerd.effective, {"plugins", kCri3}) != nullptr;
  containerd.effective_section = newer ? kCri3 : kCri2;
  return containerd;
}

std::vector<Setting> CriSettings(const EngineFacts& facts, const Containerd& containerd,
                                 const DesiredConfig& desired, Goal& goal) {
  std::vector<Setting> settings;
  const auto want = [&](Setting setting, bool write) {
    goal.effective.push_back({Below(containerd.effective_section, setting.path), setting.value});
    if (!write) return;
    setting.path = Below(containerd.section, setting.path);
    settings.push_back(std::move(setting));
  };
  if (desired.cdi) {
    const bool on = HasCdi(facts, containerd);
    if (on) goal.remarks.push_back(facts.name + " already has CDI enabled");
    goal.may_change.push_back(Below(containerd.effective_section, {"enable_cdi"}));
    want({{"enable_cdi"}, Flag(true)}, !on);
  }
  const Value* model = Model(facts, containerd, desired);
  for (const RuntimeHandler& handler : desired.handlers) {
    goal.may_change.push_back(
        Below(containerd.effective_section, {"containerd", "runtimes", handler.name}));
    for (Setting& setting : RuntimeSettings(handler, model)) want(std::move(setting), true);
  }
  if (!desired.default_handler.empty()) {
    goal.may_change.push_back(
        Below(containerd.effective_section, {"containerd", "default_runtime_name"}));
    want({{"containerd", "default_runtime_name"}, Text(desired.default_handler)}, true);
  }
  return settings;
}

base::Result<Goal> ContainerdGoal(const EngineFacts& facts, const DesiredConfig& desired) {
  if (desired.cdi && facts.major > 0 && !AtLeast(facts, 1, 7))
    return Error(Code::kFailedPrecondition,
                 "containerd " + std::to_string(facts.major) + "." + std::to_string(facts.minor) +
                     " does not support CDI (1.7 and newer do): use a newer version, or omit "
                     "--cdi.enabled and run containers with the runtime");
  Goal goal;
  ASSIGN(const Containerd containerd, ReadContainerd(facts));
  if (IsDisabled(containerd.main, containerd.section))
    return Error(
        Code::kFailedPrecondition,
        facts.main.path +
            " lists the CRI plugin in disabled_plugins, so this would have no effect: for Docker "
            "containers pass --runtime docker, for the kubelet remove it from that list");
  std::vector<Setting> settings = CriSettings(facts, containerd, desired, goal);
  if (settings.empty()) return goal;
  ASSIGN(const bool drop_in, TakesDropIn(facts, containerd));
  if (drop_in) {
    if (!desired.handlers.empty()) KeepRuntimes(facts, containerd, containerd.main, settings);
    TRY(AddDropIn(goal, facts, containerd, std::move(settings)));
    return goal;
  }
  ASSIGN(const SourceFile* file, LastFileWith(facts, containerd.section));
  ASSIGN(const Value document, Read(FileFormat::kToml, file->text.value_or(""), file->path));
  if (!desired.handlers.empty()) KeepRuntimes(facts, containerd, document, settings);
  AddVersion(*file, containerd.version, settings);
  TRY(AddTarget(goal, FileFormat::kToml, *file, settings));
  return goal;
}

}  // namespace penstock::protocol::engine::internal
