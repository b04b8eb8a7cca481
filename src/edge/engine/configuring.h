// One engine configured from beginning to end: what a crash left is repaired first, then files are read, a change is planned, written,
// proved by the engine's own words, the engine started anew where that changed something, and everything put back where it does not come
// back.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "edge/engine/change.h"
#include "edge/engine/links.h"
#include "edge/engine/site.h"
#include "os/loop.h"

namespace penstock::edge::engine {

enum class Restart {
  kNone,     ///< the engine reads its files when it starts the next time
  kSystemd,  ///< systemctl restart
  kSignal,   ///< SIGHUP: docker and CRI-O read some keys anew, containerd ends and whoever watches it starts it
};

/// Where it is learnt what is in force.
enum class Source {
  kAuto,     ///< the engine is asked where its program is there
  kCommand,  ///< it must be asked
  kFile,     ///< its files must do
};

struct ConfigureOptions {
  Wish wish;             ///< empty: what we wrote is undone
  bool beside = false;   ///< what an earlier wish said stays, with this one added
  bool dry_run = false;  ///< only plan
  bool respect = false;  ///< where others changed what we wrote, leave it to them: kFailedPrecondition
  Restart restart = Restart::kNone;
  Source source = Source::kAuto;
  bool drop_in_wanted = false;                  ///< the site's drop-in was named by somebody
  std::optional<LinkWish> links;                ///< docker: links for `--gpus`; nothing: they stay as they are, or go with an empty wish
  std::string state_dir = "/var/lib/penstock";  ///< what is remembered lies in its engines/
  std::string proc_root = "/proc";
  base::Duration patience = std::chrono::minutes(2);  ///< how long it may take until the engine is there again
};

struct Configured {
  Change change;
  std::vector<Link> linked, unlinked;  ///< links that were made, and links of ours that went
  std::string diff;                    ///< of all files, as `diff -u` prints it; empty: nothing changes
  bool restarted = false;
  std::vector<std::string> remarks;
};

/// What happens, for people: "containerd starts anew".
using Progress = std::function<void(const std::string&)>;

/// One run. On the loop's thread, which it blocks for the time of small files' reading and writing. The destructor ends it where it is, as
/// a crash would: the next run repairs. Errors: kAlreadyExists where another run is at this engine; kAborted where the engine did not come
/// back and the old files are in force again; those of MakeChange, of reading and of writing. After any error the files are as they were.
class Configuring {
 public:
  using Done = std::function<void(base::Result<Configured>)>;
  Configuring(os::Loop& loop, Site site, ConfigureOptions options, Progress progress, Done done);
  ~Configuring();
  Configuring(const Configuring&) = delete;
  Configuring& operator=(const Configuring&) = delete;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

/// The same on a loop of its own, for programs that do nothing else. Blocks.
base::Result<Configured> Configure(Site site, ConfigureOptions options, Progress progress);

/// How what we wrote for this engine stands, by its files and what is remembered. Blocks shortly. Errors by errno, and of a damaged memory.
base::Result<StandingOf> AskStanding(const Site& site, const std::string& state_dir);

/// The engines that we have written something for. Blocks shortly. An unreadable memory is an error.
base::Result<std::vector<Site>> ConfiguredSites(const std::string& state_dir);

/// The file that remembers an engine: <state_dir>/engines/<name>.json, told apart by the configuration's path where that is not the
/// recipe's.
std::string JournalPath(const Site& site, const std::string& state_dir);

}  // namespace penstock::edge::engine
