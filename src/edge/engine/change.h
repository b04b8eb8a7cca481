// Changes of an engine's files, and what of them was ours: kept so that others' later edits count and undoing is exact. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "edge/engine/plan.h"

namespace penstock::edge::engine {

/// What we have written for an engine, and what was there before. No files: nothing.
struct Record {
  Wish wish;
  std::vector<Target> files;
};

/// Texts of files as they are; no text: there is no such file.
using Disk = std::map<std::string, std::optional<std::string>>;

/// One file's step from what it is to what it shall be.
struct FileChange {
  std::string path;
  std::optional<std::string> from, to;
  bool operator==(const FileChange&) const = default;
};

/// All that a wish takes, in the order that it is written.
struct Change {
  std::vector<FileChange> files;  ///< empty: nothing changes
  Record record;                  ///< once it is done
  std::vector<std::string> remarks;
  std::vector<Setting> effective;  ///< see Goal
  std::vector<Path> may_change;
};

/// What the wish takes from what is there: what we wrote before is taken back first, and what others changed since stays. An empty wish
/// undoes all: files that nobody else touched get their first text, to the byte. The facts' texts are those of `disk`, which also has the
/// record's files. Errors as MakeGoal's.
base::Result<Change> MakeChange(const Facts& facts, const Disk& disk, const Record& record, const Wish& wish);

/// How what we wrote stands.
enum class Standing {
  kNone,     ///< we wrote nothing
  kAsOurs,   ///< it is there
  kChanged,  ///< others gave our keys other values
  kMissing,  ///< others took it away
};
struct StandingOf {
  Standing standing = Standing::kNone;
  std::vector<std::string> which;  ///< keys and files that are not as we wrote them: "/etc/x.toml: a.b is 1"
};
StandingOf Stands(const Disk& disk, const Record& record);

/// A file's text without what we wrote to it; nothing: no such file. kFailedPrecondition where others changed it so that the two cannot be
/// told apart.
base::Result<std::optional<std::string>> Revert(const Target& written, const std::optional<std::string>& now);

/// What is wrong with what an engine says is in force after a change, where something is: a wish that did not come true, or anything else
/// that changed. Both texts are TOML.
base::Status CheckEffect(const Change& change, const std::string& before, const std::string& after);

/// Whether it says the same.
bool SameEffect(const std::string& before, const std::string& after);

}  // namespace penstock::edge::engine
