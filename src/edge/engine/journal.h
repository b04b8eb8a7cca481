// The file that remembers, for one engine, what we wrote and what is being done right now: who finds it can finish or undo either.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/core/result.h"
#include "edge/engine/change.h"

namespace penstock::edge::engine {

/// How far a change is.
enum class Phase {
  kDone,        ///< `record` is what there is
  kWriting,     ///< the files may have their old or their new text; the engine was not told yet
  kRestarting,  ///< all files have their new text; the engine starts anew
  kReturning,   ///< the engine did not come back: the files get their old text, and it starts anew with that
};

/// A process for as long as it lives: a later one of the same number has another start.
struct Identity {
  pid_t pid = 0;  ///< 0: not known
  std::uint64_t start = 0;
  bool operator==(const Identity&) const = default;
};

/// How an engine is found again that was configured: Site's members of the same names.
struct Remembered {
  std::string name, config, drop_in, socket, program, unit;
  bool operator==(const Remembered&) const = default;
};

struct Journal {
  Remembered site;
  Phase phase = Phase::kDone;
  Record record;                  ///< in force before the change that goes on, if one does
  Record next;                    ///< in force once it is done
  std::vector<FileChange> files;  ///< of the change
  Identity engine;                ///< who ran when it was told to start anew
};

/// One text of JSON. It holds whole configuration files: not for everybody's eyes.
std::string Encode(const Journal& journal);

/// kInvalidArgument with file:line:column; kFailedPrecondition where a newer version wrote it.
base::Result<Journal> DecodeJournal(std::string_view text, std::string_view file);

}  // namespace penstock::edge::engine
