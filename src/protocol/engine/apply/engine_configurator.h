// Configures one engine: repairs what an interrupted run left, reads the files, plans and writes
// the change, verifies it with the engine's own output, restarts the engine if its configuration
// changed, and restores the old files if it does not come back.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "os/loop.h"
#include "protocol/engine/apply/change.h"
#include "protocol/engine/engine_install.h"
#include "protocol/engine/links.h"

namespace penstock::protocol::engine {

enum class Restart {
  kNone,     ///< the engine reads its files at its next start
  kSystemd,  ///< systemctl restart
  kSignal,   ///< SIGHUP: docker and CRI-O reread some keys; containerd ends, and its supervisor
             ///< starts it again
};

/// The source of the configuration in force.
enum class Source {
  kAuto,     ///< the engine, if its program exists
  kCommand,  ///< the engine: it must be asked
  kFile,     ///< the files alone
};

struct ConfigureOptions {
  DesiredConfig desired;  ///< empty: undo what Penstock wrote
  bool beside = false;    ///< add this to what was desired before
  bool dry_run = false;   ///< only plan
  bool respect =
      false;  ///< if others changed what Penstock wrote, leave it to them: kFailedPrecondition
  Restart restart = Restart::kNone;
  Source source = Source::kAuto;
  bool drop_in_wanted = false;        ///< the drop-in of `install` was named explicitly
  std::optional<DesiredLinks> links;  ///< docker: links for `--gpus`; nothing: they stay as they
                                      ///< are, or are removed when nothing is desired any more
  std::string state_dir = "/var/lib/penstock";  ///< its engines/ holds the journals
  std::string proc_root = "/proc";
  base::Duration patience = std::chrono::minutes(2);  ///< how long the engine may take to come back
};

struct ConfigureResult {
  EngineConfigChange change;
  std::vector<GpusLink> linked, unlinked;  ///< links made; links of ours removed
  std::string diff;  ///< of all files, as `diff -u` prints it; empty: nothing changes
  bool restarted = false;
  std::vector<std::string> remarks;
};

/// Receives progress messages for people.
using ConfigureProgress = std::function<void(const std::string&)>;

/// One run. On the loop's thread, which it blocks while it reads and writes small files. The
/// destructor stops the run where it is, as a crash would: the next run repairs. Errors:
/// kAlreadyExists if another run works on this engine; kAborted if the engine did not come back and
/// the old files are in force again; those of MakeChange, of reading and of writing. After any
/// error the files are as they were.
class EngineConfigurator {
 public:
  using Done = std::function<void(base::Result<ConfigureResult>)>;
  EngineConfigurator(os::Loop& loop, EngineInstall install, ConfigureOptions options,
                     ConfigureProgress progress, Done done);
  ~EngineConfigurator();
  EngineConfigurator(const EngineConfigurator&) = delete;
  EngineConfigurator& operator=(const EngineConfigurator&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// Does the same on its own loop, for programs that do nothing else. Blocks.
base::Result<ConfigureResult> Configure(EngineInstall install, ConfigureOptions options,
                                        ConfigureProgress progress);

/// Returns the engines for which Penstock wrote something. Blocks briefly. An unreadable journal is
/// an error.
base::Result<std::vector<EngineInstall>> ConfiguredInstalls(const std::string& state_dir);

/// Returns the path of an engine's journal: <state_dir>/engines/<name>.json, with a suffix for the
/// configuration's path if it differs from the recipe's.
std::string JournalPath(const EngineInstall& install, const std::string& state_dir);

}  // namespace penstock::protocol::engine
