// Declares the steps of one configurator run. Private to engine_configurator*.cc.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "os/lock_file.h"
#include "os/process/command.h"
#include "protocol/engine/apply/engine_configurator.h"
#include "protocol/engine/apply/journal.h"
#include "protocol/engine/engine_commands.h"
#include "protocol/engine/install_files.h"

namespace penstock::protocol::engine {

struct EngineConfigurator::State : std::enable_shared_from_this<EngineConfigurator::State> {
  using Next = std::function<void(base::Status)>;
  using Answered = std::function<void(base::Result<os::Command::Outcome>)>;

  State(os::Loop& a_loop, EngineInstall a_install, ConfigureOptions some_options,
        ConfigureProgress a_progress, Done a_done)
      : loop(a_loop),
        install(std::move(a_install)),
        options(std::move(some_options)),
        progress(std::move(a_progress)),
        done(std::move(a_done)) {}

  // engine_configurator.cc: the steps before and after a restart of the engine.
  void Begin();
  base::Status Open();
  void Repair();
  void Query();
  void ReadEffect(std::function<void(base::Result<std::optional<std::string>>)> then);
  void Plan(std::optional<std::string> effect);
  base::Status MakePlan(std::optional<std::string> effect);
  base::Status MakeLinkPlan();
  bool ChangesNothing() const {
    return outcome.change.files.empty() && outcome.linked.empty() && outcome.unlinked.empty();
  }
  void Apply();
  base::Status ApplyLinks();
  base::Status RememberLinks(const std::vector<GpusLink>& now) const;
  void Complete();
  base::Status GoBack();
  void Check();
  void Judge(const base::Result<std::optional<std::string>>& after);
  void Refuse(const base::Error& why);
  void Start(bool changed);
  void Finish(const base::Status& status);

  // engine_configurator_restart.cc: the restart of the engine.
  base::Status CanRestart() const;
  void Restart(Next next);
  void Await(Next next);
  void QueryHealth(Next next);
  void Retry(const base::Error& last, Next next);
  void Return(const base::Error& why);
  ProcessIdentity Running() const;
  bool IsAgain() const;

  void Run(CommandLine command, Answered then);
  void Notify(const std::string& what) {
    if (progress) progress(what);
  }
  base::Status Save(Phase phase);

  os::Loop& loop;
  EngineInstall install;
  ConfigureOptions options;
  ConfigureProgress progress;
  Done done;

  std::string journal_path;
  std::optional<os::LockFile> lock;
  std::optional<ConfigFiles> files;
  Journal journal;
  std::vector<GpusLink> links;         ///< before this run
  std::vector<GpusLink> links_wanted;  ///< after this run
  Gathered gathered;
  ConfigureResult outcome;
  std::optional<std::string> effect_before;
  int major = 0, minor = 0;
  base::TimePoint until;
  base::TimerId timer = 0;
  std::unique_ptr<os::Command> command;
};

}  // namespace penstock::protocol::engine
