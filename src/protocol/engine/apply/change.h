// Computes changes of an engine's files and records what Penstock wrote, so that later edits by
// others are kept and undoing is exact. Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "protocol/engine/apply/desired_config.h"

namespace penstock::protocol::engine {

/// What Penstock wrote for an engine, and what was there before. No files: nothing was written.
struct SettingRecord {
  DesiredConfig desired;
  std::vector<Target> files;
};

/// Present texts of files; no text: there is no such file.
using Disk = std::map<std::string, std::optional<std::string>>;

/// One file's change from its present to its desired text.
struct FileChange {
  std::string path;
  std::optional<std::string> from, to;
  bool operator==(const FileChange&) const = default;
};

/// All changes that a desired configuration requires, in the order in which they are written.
struct EngineConfigChange {
  std::vector<FileChange> files;  ///< empty: nothing changes
  SettingRecord record;           ///< after the change
  std::vector<std::string> remarks;
  std::vector<Setting> effective;  ///< see Goal
  std::vector<Path> may_change;
};

/// Computes the changes from the present files to the desired configuration: takes back what
/// Penstock wrote before, and keeps what others changed since. An empty desired configuration
/// undoes everything: files that only Penstock changed get their first text, to the byte. The texts
/// of `facts` are those of `disk`, which also has the files of `record`. Errors as for MakeGoal.
base::Result<EngineConfigChange> MakeChange(const EngineFacts& facts, const Disk& disk,
                                            const SettingRecord& record,
                                            const DesiredConfig& desired);

/// How the files compare with what Penstock wrote.
enum class Standing {
  kNone,       ///< Penstock wrote nothing
  kAsWritten,  ///< the files are as Penstock wrote them
  kChanged,    ///< others gave our keys other values
  kMissing,    ///< others removed it
};
struct StandingOf {
  Standing standing = Standing::kNone;
  std::vector<std::string>
      which;  ///< keys and files that differ from what Penstock wrote: "/etc/x.toml: a.b is 1"
};
StandingOf FindStanding(const Disk& disk, const SettingRecord& record);

/// Returns a file's text without what Penstock wrote to it; nothing: no such file.
/// kFailedPrecondition if later changes by others cannot be separated from ours.
base::Result<std::optional<std::string>> Revert(const Target& written,
                                                const std::optional<std::string>& now);

/// Compares the configuration that an engine reports in force before and after a change. Fails if a
/// setting did not take effect, or if anything else changed. Both texts are TOML.
base::Status CheckEffect(const EngineConfigChange& change, const std::string& before,
                         const std::string& after);

/// Returns whether both configurations in force have the same values.
bool SameEffect(const std::string& before, const std::string& after);

}  // namespace penstock::protocol::engine
