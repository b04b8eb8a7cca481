// The steps of one run; private to configuring*.cc.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "edge/engine/asking.h"
#include "edge/engine/configuring.h"
#include "edge/engine/journal.h"
#include "edge/engine/site_files.h"
#include "os/command.h"
#include "os/lock_file.h"

namespace penstock::edge::engine {

struct Configuring::State : std::enable_shared_from_this<Configuring::State> {
  using Next = std::function<void(base::Status)>;
  using Answered = std::function<void(base::Result<os::Command::Outcome>)>;

  State(os::Loop& a_loop, Site a_site, ConfigureOptions some_options, Progress a_progress, Done a_done)
      : loop(a_loop), site(std::move(a_site)), options(std::move(some_options)), progress(std::move(a_progress)), done(std::move(a_done)) {}

  // configuring.cc: up to the files, and past them.
  void Begin();
  base::Status Open();
  void Repair();
  void Ask();
  void AskEffect(std::function<void(base::Result<std::optional<std::string>>)> then);
  void Plan(std::optional<std::string> effect);
  base::Status MakePlan(std::optional<std::string> effect);
  base::Status MakeLinkPlan();
  bool ChangesNothing() const { return outcome.change.files.empty() && outcome.linked.empty() && outcome.unlinked.empty(); }
  void Carry();
  base::Status CarryLinks();
  base::Status RememberLinks(const std::vector<Link>& now) const;
  void Settle();
  base::Status GoBack();
  void Check();
  void Judge(const base::Result<std::optional<std::string>>& after);
  void Refuse(const base::Error& why);
  void Start(bool changed);
  void Finish(const base::Status& status);

  // configuring_restart.cc: the engine starts anew.
  base::Status CanStartAnew() const;
  void StartAnew(Next next);
  void Await(Next next);
  void AskHealth(Next next);
  void Retry(const base::Error& last, Next next);
  void Return(const base::Error& why);
  Identity Running() const;
  bool IsAnew() const;

  void Run(Arguments command, Answered then);
  void Tell(const std::string& what) {
    if (progress) progress(what);
  }
  base::Status Save(Phase phase);

  os::Loop& loop;
  Site site;
  ConfigureOptions options;
  Progress progress;
  Done done;

  std::string journal_path;
  std::optional<os::LockFile> lock;
  std::optional<ConfigFiles> files;
  Journal journal;
  std::vector<Link> links;         ///< ours, before this run
  std::vector<Link> links_wanted;  ///< and after it
  Gathered gathered;
  Configured outcome;
  std::optional<std::string> effect_before;
  int major = 0, minor = 0;
  base::TimePoint until;
  base::TimerId timer = 0;
  std::unique_ptr<os::Command> command;
};

}  // namespace penstock::edge::engine
