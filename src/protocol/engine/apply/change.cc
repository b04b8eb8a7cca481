// Compares three versions of a file: the first one, the one that Penstock wrote, and the present
// one.
#include "protocol/engine/apply/change.h"

#include <algorithm>

#include "protocol/engine/text/line_diff.h"

namespace penstock::protocol::engine {
namespace {

using base::Value;
using Content = std::optional<std::string>;

Content Now(const Disk& disk, const std::string& path) {
  const auto found = disk.find(path);
  return found == disk.end() ? std::nullopt : found->second;
}

/// Returns the tables above these keys that the first text lacked, the deepest last.
std::vector<Path> NewTables(const Value& before, const std::vector<Path>& keys) {
  std::vector<Path> tables;
  for (Path path : keys)
    while (path.pop_back(), !path.empty())
      if (FindAt(before, path) == nullptr && std::ranges::find(tables, path) == tables.end())
        tables.push_back(path);
  return tables;
}

/// Reverts key by key: keys that still have our values get their first values back.
base::Result<std::string> RevertKeys(const Target& written, const std::string& now) {
  ASSIGN(const Value before, Read(written.format, written.before.value_or(""), written.path));
  ASSIGN(const Value document, Read(written.format, now, written.path));
  std::vector<Path> gone;
  std::vector<Setting> back;
  for (const Setting& setting : written.settings) {
    const Value* value = FindAt(document, setting.path);
    if (value == nullptr || Spell(*value) != Spell(setting.value)) continue;
    const Value* first = FindAt(before, setting.path);
    if (first == nullptr) {
      gone.push_back(setting.path);
    } else {
      back.push_back({setting.path, *first});
    }
  }
  ASSIGN(const std::string text,
         Withdraw(written.format, now, written.path, gone, NewTables(before, gone)));
  return Apply(written.format, text, written.path, back);
}

bool IsBlank(FileFormat format, const std::string& text) {
  const auto document = Read(format, text, "");
  return document.ok() && (!document->map || document->map->empty());
}

Error CannotReport(const Target& written) {
  return Error(
      Code::kFailedPrecondition,
      written.path +
          " was changed in the lines that Penstock wrote: remove its additions manually:\n" +
          Unified(written.path, written.before, written.after));
}

/// Returns the facts as they would be without Penstock's changes.
base::Result<EngineFacts> Without(EngineFacts facts, const Disk& disk,
                                  const SettingRecord& record) {
  std::map<std::string, Content> reverted;
  for (const Target& file : record.files) {
    ASSIGN(reverted[file.path], Revert(file, Now(disk, file.path)));
    for (const Setting& setting : file.settings) facts.written.push_back(setting.path);
  }
  facts.standing = record.desired;
  const auto replace = [&reverted](SourceFile& file) {
    if (const auto found = reverted.find(file.path); found != reverted.end())
      file.text = found->second;
  };
  for (SourceFile* file : {&facts.main, &facts.drop_in, &facts.template_file}) replace(*file);
  for (SourceFile& file : facts.imported) replace(file);
  return facts;
}

std::optional<Path> KeyThatMayNotChange(const EngineConfigChange& change,
                                        const std::vector<Difference>& differences) {
  for (const Difference& difference : differences) {
    const auto allowed = [&difference](const Path& top) { return IsBelow(difference.path, top); };
    if (std::ranges::none_of(change.may_change, allowed)) return difference.path;
  }
  return std::nullopt;
}

/// containerd reports its imports either as the files that it read or as their patterns, so only
/// their content is compared. A key with Go's zero value equals a missing key: containerd reports
/// options of runtimes as they were written.
Tree EffectOf(const Value& document) {
  Tree tree = ToTree(document);
  Take(tree, {"imports"});
  std::erase_if(tree, [](const auto& entry) {
    const std::string& value = entry.second;
    return value == "\"\"" || value == "false" || value == "0" || value == "[]" || value == "{}";
  });
  return tree;
}

}  // namespace

base::Result<Content> Revert(const Target& written, const Content& now) {
  if (!now) return Content();
  if (*now == written.after) return written.before;
  if (written.format == FileFormat::kText) return CannotReport(written);
  const auto by_keys = RevertKeys(written, *now);
  if (!by_keys.ok())
    return by_keys.error().code() == Code::kInvalidArgument ? by_keys.error()
                                                            : CannotReport(written);
  if (!written.before && IsBlank(written.format, *by_keys)) return Content();
  return Content(*by_keys);
}

base::Result<EngineConfigChange> MakeChange(const EngineFacts& facts, const Disk& disk,
                                            const SettingRecord& record,
                                            const DesiredConfig& desired) {
  ASSIGN(const EngineFacts bare, Without(facts, disk, record));
  ASSIGN(Goal goal, MakeGoal(bare, desired));
  EngineConfigChange change{.record = {desired, goal.targets},
                            .remarks = goal.remarks,
                            .effective = goal.effective,
                            .may_change = goal.may_change};
  for (const Target& target : goal.targets)
    change.files.push_back({target.path, Now(disk, target.path), target.after});
  for (const Target& old : record.files) {
    const auto same = [&old](const FileChange& file) { return file.path == old.path; };
    if (std::ranges::any_of(change.files, same)) continue;
    ASSIGN(Content text, Revert(old, Now(disk, old.path)));
    change.files.push_back({old.path, Now(disk, old.path), std::move(text)});
  }
  std::erase_if(change.files, [](const FileChange& file) { return file.from == file.to; });
  // What the earlier desired configuration changed may change back.
  if (const auto old = MakeGoal(bare, record.desired); old.ok())
    change.may_change.insert(change.may_change.end(), old->may_change.begin(),
                             old->may_change.end());
  return change;
}

StandingOf FindStanding(const Disk& disk, const SettingRecord& record) {
  StandingOf standing{record.files.empty() ? Standing::kNone : Standing::kAsWritten, {}};
  bool present = false;
  for (const Target& file : record.files) {
    const Content now = Now(disk, file.path);
    if (now == file.after) {
      present = true;
      continue;
    }
    const auto document = now && file.format != FileFormat::kText
                              ? Read(file.format, *now, file.path)
                              : base::Result<Value>(Value());
    if (!now || !document.ok() || file.format == FileFormat::kText) {
      standing.which.push_back(file.path + (now ? " has different text" : " is missing"));
      present = present || now.has_value();
      continue;
    }
    for (const Setting& setting : file.settings) {
      const Value* value = FindAt(*document, setting.path);
      present = present || value != nullptr;
      if (value != nullptr && Spell(*value) == Spell(setting.value)) continue;
      standing.which.push_back(file.path + ": " + Dotted(setting.path) +
                               (value == nullptr ? " is missing" : " is " + Spell(*value)));
    }
  }
  if (!standing.which.empty())
    standing.standing = present ? Standing::kChanged : Standing::kMissing;
  return standing;
}

base::Status CheckEffect(const EngineConfigChange& change, const std::string& before,
                         const std::string& after) {
  ASSIGN(const Value old, Read(FileFormat::kToml, before, "the configuration in force"));
  ASSIGN(const Value document, Read(FileFormat::kToml, after, "the new configuration"));
  for (const Setting& setting : change.effective) {
    const Value* value = FindAt(document, setting.path);
    if (value != nullptr && Spell(*value) == Spell(setting.value)) continue;
    return Error(Code::kFailedPrecondition,
                 "the engine does not apply the written settings: " + Dotted(setting.path) +
                     " would be " + (value == nullptr ? "absent" : Spell(*value)) + ", not " +
                     Spell(setting.value) + "; another file overrides it");
  }
  const auto wrong = KeyThatMayNotChange(change, Compare(EffectOf(old), EffectOf(document)));
  if (!wrong) return {};
  return Error(Code::kFailedPrecondition,
               "the engine would change " + Dotted(*wrong) + " as well, which was not requested");
}

bool SameEffect(const std::string& before, const std::string& after) {
  const auto one = Read(FileFormat::kToml, before, ""), other = Read(FileFormat::kToml, after, "");
  return one.ok() && other.ok() && Compare(EffectOf(*one), EffectOf(*other)).empty();
}

}  // namespace penstock::protocol::engine
