// Three sides of a file: as it was, as we wrote it, as it is now.
#include "edge/engine/change.h"

#include <algorithm>

#include "edge/engine/line_diff.h"

namespace penstock::edge::engine {
namespace {

using base::Code;
using base::Error;
using base::Value;
using Content = std::optional<std::string>;

Content Now(const Disk& disk, const std::string& path) {
  const auto found = disk.find(path);
  return found == disk.end() ? std::nullopt : found->second;
}

/// Tables above these keys that the first text did not have, the deepest last.
std::vector<Path> NewTables(const Value& before, const std::vector<Path>& keys) {
  std::vector<Path> tables;
  for (Path path : keys)
    while (path.pop_back(), !path.empty())
      if (FindAt(before, path) == nullptr && std::find(tables.begin(), tables.end(), path) == tables.end()) tables.push_back(path);
  return tables;
}

/// Key by key: those that have our values get their first ones back.
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
  ASSIGN(const std::string text, Withdraw(written.format, now, written.path, gone, NewTables(before, gone)));
  return Apply(written.format, text, written.path, back);
}

bool SaysNothing(Format format, const std::string& text) {
  const auto document = Read(format, text, "");
  return document.ok() && (!document->map || document->map->empty());
}

bool SaysTheSame(Format format, const std::string& a, const std::string& b) {
  const auto one = Read(format, a, ""), other = Read(format, b, "");
  return one.ok() && other.ok() && Compare(ToTree(*one), ToTree(*other)).empty();
}

Error CannotTell(const Target& written) {
  return Error(Code::kFailedPrecondition, written.path + " was changed where Penstock wrote to it: take out by hand what it added:\n" +
                                              Unified(written.path, written.before, written.after));
}

/// The facts as they would be without us.
base::Result<Facts> Without(Facts facts, const Disk& disk, const Record& record) {
  std::map<std::string, Content> reverted;
  for (const Target& file : record.files) {
    ASSIGN(reverted[file.path], Revert(file, Now(disk, file.path)));
    for (const Setting& setting : file.settings) facts.written.push_back(setting.path);
  }
  facts.standing = record.wish;
  const auto replace = [&reverted](SourceFile& file) {
    if (const auto found = reverted.find(file.path); found != reverted.end()) file.text = found->second;
  };
  for (SourceFile* file : {&facts.main, &facts.drop_in, &facts.template_file}) replace(*file);
  for (SourceFile& file : facts.imported) replace(file);
  return facts;
}

std::optional<Path> KeyThatMayNotChange(const Change& change, const std::vector<Difference>& differences) {
  for (const Difference& difference : differences) {
    const auto allowed = [&difference](const Path& top) { return IsBelow(difference.path, top); };
    if (std::none_of(change.may_change.begin(), change.may_change.end(), allowed)) return difference.path;
  }
  return std::nullopt;
}

/// containerd tells its imports as the files it read or as their patterns: what they say is compared, not which they are. A key with Go's
/// zero value is no other than one that is not there: options of runtimes are told as they were written.
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
  const auto merged = Merge(written.after, written.before.value_or(""), *now);
  Content text;
  if (written.format == Format::kText) {
    if (!merged) return CannotTell(written);
    text = merged;
    if (!written.before && text->empty()) text.reset();
    return text;
  }
  const auto by_keys = RevertKeys(written, *now);
  if (!by_keys.ok()) return by_keys.error().code() == Code::kInvalidArgument ? by_keys.error() : CannotTell(written);
  // Joined line by line, comments come and go as well; where that is not to be had, keys must do.
  text = merged && SaysTheSame(written.format, *merged, *by_keys) ? *merged : *by_keys;
  if (!written.before && SaysNothing(written.format, *text)) text.reset();
  return text;
}

base::Result<Change> MakeChange(const Facts& facts, const Disk& disk, const Record& record, const Wish& wish) {
  ASSIGN(const Facts bare, Without(facts, disk, record));
  ASSIGN(Goal goal, MakeGoal(bare, wish));
  Change change{.record = {wish, goal.targets}, .remarks = goal.remarks, .effective = goal.effective, .may_change = goal.may_change};
  for (const Target& target : goal.targets) change.files.push_back({target.path, Now(disk, target.path), target.after});
  for (const Target& old : record.files) {
    const auto same = [&old](const FileChange& file) { return file.path == old.path; };
    if (std::any_of(change.files.begin(), change.files.end(), same)) continue;
    ASSIGN(Content text, Revert(old, Now(disk, old.path)));
    change.files.push_back({old.path, Now(disk, old.path), std::move(text)});
  }
  std::erase_if(change.files, [](const FileChange& file) { return file.from == file.to; });
  // What an earlier wish changed may change back.
  if (const auto old = MakeGoal(bare, record.wish); old.ok())
    change.may_change.insert(change.may_change.end(), old->may_change.begin(), old->may_change.end());
  return change;
}

StandingOf Stands(const Disk& disk, const Record& record) {
  StandingOf stands{record.files.empty() ? Standing::kNone : Standing::kAsOurs, {}};
  bool present = false;
  for (const Target& file : record.files) {
    const Content now = Now(disk, file.path);
    if (now == file.after) {
      present = true;
      continue;
    }
    const auto document = now && file.format != Format::kText ? Read(file.format, *now, file.path) : base::Result<Value>(Value());
    if (!now || !document.ok() || file.format == Format::kText) {
      stands.which.push_back(file.path + (now ? " is another text" : " is not there"));
      present = present || now.has_value();
      continue;
    }
    for (const Setting& setting : file.settings) {
      const Value* value = FindAt(*document, setting.path);
      present = present || value != nullptr;
      if (value != nullptr && Spell(*value) == Spell(setting.value)) continue;
      stands.which.push_back(file.path + ": " + Dotted(setting.path) + (value == nullptr ? " is not there" : " is " + Spell(*value)));
    }
  }
  if (!stands.which.empty()) stands.standing = present ? Standing::kChanged : Standing::kMissing;
  return stands;
}

base::Status CheckEffect(const Change& change, const std::string& before, const std::string& after) {
  ASSIGN(const Value old, Read(Format::kToml, before, "what was in force"));
  ASSIGN(const Value document, Read(Format::kToml, after, "what would be in force"));
  for (const Setting& setting : change.effective) {
    const Value* value = FindAt(document, setting.path);
    if (value != nullptr && Spell(*value) == Spell(setting.value)) continue;
    return Error(Code::kFailedPrecondition, "the engine does not see what was written: " + Dotted(setting.path) + " would be " +
                                                (value == nullptr ? "absent" : Spell(*value)) + ", not " + Spell(setting.value) +
                                                "; another file has the last word");
  }
  const auto wrong = KeyThatMayNotChange(change, Compare(EffectOf(old), EffectOf(document)));
  if (!wrong) return {};
  return Error(Code::kFailedPrecondition, "the engine would change " + Dotted(*wrong) + " as well, which nobody asked for");
}

bool SameEffect(const std::string& before, const std::string& after) {
  const auto one = Read(Format::kToml, before, ""), other = Read(Format::kToml, after, "");
  return one.ok() && other.ok() && Compare(EffectOf(*one), EffectOf(*other)).empty();
}

}  // namespace penstock::edge::engine
