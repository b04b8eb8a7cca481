// Records, in one file per engine, what Penstock wrote and which change is under way, so that a
// later run can finish or undo either.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/core/result.h"
#include "protocol/engine/apply/change.h"

namespace penstock::protocol::engine {

/// The progress of a change.
enum class Phase {
  kDone,     ///< `record` is in force
  kWriting,  ///< the files may have their old or their new text; the engine is not yet asked to use
             ///< them
  kRestarting,  ///< all files have their new text; the engine restarts
  kReturning,  ///< the engine did not come back: the files get their old text, and it restarts with
               ///< that
};

/// Identifies a process for its lifetime: a later process with the same pid has another start.
struct ProcessIdentity {
  pid_t pid = 0;  ///< 0: unknown
  std::uint64_t start = 0;
  bool operator==(const ProcessIdentity&) const = default;
};

/// How a configured engine is found again: members of EngineInstall with the same names.
struct Remembered {
  std::string name, config, drop_in, socket, program, unit;
  bool operator==(const Remembered&) const = default;
};

struct Journal {
  Remembered install;
  Phase phase = Phase::kDone;
  SettingRecord record;           ///< in force before the change under way, if there is one
  SettingRecord next;             ///< in force once the change is done
  std::vector<FileChange> files;  ///< of the change
  ProcessIdentity engine;         ///< the process that ran when the restart was requested
};

/// Returns one JSON text. It contains whole configuration files: keep it private.
std::string Encode(const Journal& journal);

/// kDataLoss with file:line:column; kFailedPrecondition if a newer version wrote it.
base::Result<Journal> DecodeJournal(std::string_view text, std::string_view file);

}  // namespace penstock::protocol::engine
