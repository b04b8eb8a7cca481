// Implements the steps of a configurator run: repair, query, plan, write, verify.
#include "protocol/engine/apply/engine_configurator.h"

#include <algorithm>

#include "os/core/file.h"
#include "protocol/engine/apply/engine_configurator_state.h"
#include "protocol/engine/text/line_diff.h"

namespace penstock::protocol::engine {
namespace {

using namespace std::chrono_literals;

constexpr base::Duration kAnswersWithin = 20s;
constexpr base::Duration kOthersFinishWithin = 10s;  // another run: the agent's, or a manual one
constexpr base::Duration kTryAgain = 100ms;
constexpr std::size_t kMaxAnswer = 4u << 20;

/// Returns an earlier desired configuration with another one added.
DesiredConfig Joined(DesiredConfig desired, const DesiredConfig& added) {
  desired.cdi = desired.cdi || added.cdi;
  for (const RuntimeHandler& handler : added.handlers) {
    // In its place, else the files would change with the order in which handlers are added.
    const auto known = std::ranges::find(desired.handlers, handler.name, &RuntimeHandler::name);
    if (known != desired.handlers.end())
      *known = handler;
    else
      desired.handlers.push_back(handler);
  }
  if (!added.default_handler.empty()) desired.default_handler = added.default_handler;
  return desired;
}

}  // namespace

void EngineConfigurator::State::Begin() {
  if (const auto opened = Open(); !opened.ok()) {
    if (opened.error().code() != Code::kAlreadyExists) return Finish(opened);
    if (until == base::TimePoint()) {
      until = loop.clock().Now() + kOthersFinishWithin;
      Notify("waiting for another penstock process to finish: " + opened.error().message());
    }
    if (loop.clock().Now() >= until) return Finish(opened);
    timer = loop.PostAfter(kTryAgain, [self = shared_from_this()] {
      self->timer = 0;
      self->Begin();
    });
    return;
  }
  if (journal.phase == Phase::kDone) return Query();
  if (options.dry_run)
    return Finish(Error(Code::kFailedPrecondition,
                        "an earlier change of " + install.name +
                            " was interrupted: run the command again without --dry-run first"));
  Repair();
}

Status EngineConfigurator::State::Open() {
  journal_path = JournalPath(install, options.state_dir);
  if (!options.dry_run) {
    TRY(os::MakeDirectories(options.state_dir));
    TRY(os::MakeDirectories(options.state_dir + "/engines", 0700));
    ASSIGN(lock, os::LockFile::Take(options.state_dir + "/engines/lock"));
  }
  ASSIGN(files, ConfigFiles::Open(install.root));
  ASSIGN(journal, LoadJournal(journal_path));
  ASSIGN(links, LoadLinks(LinksPath(journal_path)));
  links_wanted = links;
  journal.install = {install.name,   install.config,  install.drop_in,
                     install.socket, install.program, install.unit};
  return {};
}

Status EngineConfigurator::State::Save(Phase phase) {
  journal.phase = phase;
  if (phase == Phase::kDone) {
    journal.next = {};
    journal.files.clear();
    journal.engine = {};
  }
  // A journal is also kept for links alone, because it identifies their engine.
  return SaveJournal(journal_path, journal, !links_wanted.empty());
}

/// Repairs what a killed run left: before the engine was asked to restart, restores the files;
/// after that, completes the change.
void EngineConfigurator::State::Repair() {
  Notify("restoring " + install.name + " after an interrupted change");
  const auto self = shared_from_this();
  const auto settled = [self](const Status& status) {
    if (!status.ok()) return self->Finish(status);
    if (const auto saved = self->Save(Phase::kDone); !saved.ok()) return self->Finish(saved);
    self->Query();
  };
  if (journal.phase == Phase::kRestarting) {
    const auto then = [self, settled](const Status& status) {
      if (!status.ok()) return self->Return(status.error());
      self->journal.record = self->journal.next;
      settled({});
    };
    if (options.restart == Restart::kNone) return then({});
    return journal.engine.pid != 0 && IsAgain() ? Await(then) : Restart(then);
  }
  if (const auto back = PutBack(*files, journal.files, outcome.remarks); !back.ok())
    return Finish(back);
  if (journal.phase == Phase::kReturning && options.restart != Restart::kNone)
    return Restart(settled);
  settled({});
}

void EngineConfigurator::State::Query() {
  if (options.source == Source::kFile) return Plan(std::nullopt);
  const auto self = shared_from_this();
  Run(VersionCommand(install), [self](const base::Result<os::Command::Outcome>& answer) {
    const auto version =
        answer.ok() && answer->status == 0 ? ParseVersion(answer->output) : std::nullopt;
    if (version) {
      std::tie(self->major, self->minor) = *version;
      return self->ReadEffect([self](const base::Result<std::optional<std::string>>& effect) {
        if (effect.ok()) return self->Plan(*effect);
        self->Finish(effect.error());
      });
    }
    const std::string why =
        answer.ok() ? "it answered \"" + LastLine(answer->output + answer->errors) + "\""
                    : answer.error().message();
    if (self->options.source == Source::kCommand)
      return self->Finish(Error(Code::kFailedPrecondition,
                                self->install.program +
                                    " cannot be queried for its configuration: " + why +
                                    "; pass --executable-path, or --config-source file"));
    self->outcome.remarks.push_back(self->install.name + " itself could not be queried (" + why +
                                    "): only its files were read");
    self->Plan(std::nullopt);
  });
}

/// Passes nothing if the engine has no such command, or was not to be asked.
void EngineConfigurator::State::ReadEffect(
    std::function<void(base::Result<std::optional<std::string>>)> then) {
  const std::string& path = install.in_force.empty() ? install.config : install.in_force;
  const auto main = files->Read(path);
  if (!main.ok()) return then(main.error());
  const CommandLine query = EffectCommand(install, main->has_value());
  if (query.empty() || major == 0) return then(std::optional<std::string>());
  Run(query, [this, then = std::move(then)](base::Result<os::Command::Outcome> answer) {
    if (!answer.ok()) return then(answer.error());
    if (answer->status == 0) return then(std::optional(std::move(answer->output)));
    then(Error(Code::kFailedPrecondition, install.name + " rejects its configuration: " +
                                              LastLine(answer->errors + "\n" + answer->output)));
  });
}

void EngineConfigurator::State::Plan(std::optional<std::string> effect) {
  effect_before = effect;
  if (const auto planned = MakePlan(std::move(effect)); !planned.ok()) return Finish(planned);
  if (const auto planned = MakeLinkPlan(); !planned.ok()) return Finish(planned);
  for (const FileChange& file : outcome.change.files)
    outcome.diff += Unified(file.path, file.from, file.to);
  const auto shown = [](const GpusLink& link) { return "link to " + link.target + "\n"; };
  for (const GpusLink& link : outcome.unlinked)
    outcome.diff += Unified(link.path, shown(link), std::nullopt);
  for (const GpusLink& link : outcome.linked)
    outcome.diff += Unified(link.path, std::nullopt, shown(link));
  outcome.remarks.insert(outcome.remarks.end(), outcome.change.remarks.begin(),
                         outcome.change.remarks.end());
  if (!options.dry_run && !ChangesNothing()) return Apply();
  // The record may change even if no file does: another desired configuration can require the same
  // lines.
  if (!options.dry_run) {
    journal.record = outcome.change.record;
    return Complete();
  }
  Finish({});
}

Status EngineConfigurator::State::MakePlan(std::optional<std::string> effect) {
  ASSIGN(gathered, Gather(install, *files, journal.record, major));
  gathered.facts.major = major;
  gathered.facts.minor = minor;
  gathered.facts.drop_in_wanted = options.drop_in_wanted;
  gathered.facts.effective = std::move(effect);
  const StandingOf standing = FindStanding(gathered.disk, journal.record);
  for (const std::string& one : standing.which) {
    if (options.respect)
      return Error(Code::kFailedPrecondition,
                   "the settings that Penstock wrote were changed (" + one +
                       ") and are left as they are; `penstock runtime " +
                       "configure` writes them again, `penstock runtime unconfigure` forgets them");
    outcome.remarks.push_back("changed since Penstock wrote it: " + one);
  }
  ASSIGN(outcome.change, MakeChange(gathered.facts, gathered.disk, journal.record,
                                    options.beside ? Joined(journal.record.desired, options.desired)
                                                   : options.desired));
  return {};
}

/// An engine with an empty desired configuration has no links of ours either.
Status EngineConfigurator::State::MakeLinkPlan() {
  if (outcome.change.record.desired == DesiredConfig{}) {
    links_wanted.clear();
  } else if (options.links && install.engine == Engine::kDocker) {
    const auto inspect = [this](const std::string& path) {
      return LinkOccupant{files->Holds(path), files->LinkTarget(path)};
    };
    auto plan = PlanLinks(*options.links, LinkNames(major, minor),
                          SearchPath(options.proc_root, Running().pid), links, inspect);
    links_wanted = std::move(plan.wanted);
    outcome.remarks.insert(outcome.remarks.end(), plan.remarks.begin(), plan.remarks.end());
    for (const GpusLink& link : links_wanted)
      if (files->LinkTarget(link.path) != link.target) outcome.linked.push_back(link);
  }
  for (const GpusLink& link : links)
    if (std::ranges::find(links_wanted, link) == links_wanted.end() &&
        files->LinkTarget(link.path) == link.target)
      outcome.unlinked.push_back(link);
  return {};
}

/// Records the links before making them, so that a run after a crash finds what this run made.
Status EngineConfigurator::State::ApplyLinks() {
  std::vector<GpusLink> both = links;
  both.insert(both.end(), outcome.linked.begin(), outcome.linked.end());
  TRY(RememberLinks(both));
  return MoveLinks(*files, outcome.unlinked, outcome.linked);
}

Status EngineConfigurator::State::RememberLinks(const std::vector<GpusLink>& now) const {
  if (links.empty() && outcome.linked.empty()) return {};
  return SaveLinks(LinksPath(journal_path), now);
}

/// Restores files and links to their state before this run.
Status EngineConfigurator::State::GoBack() {
  const Status back = PutBack(*files, journal.files, outcome.remarks);
  Status linked = MoveLinks(*files, outcome.linked, outcome.unlinked);
  links_wanted = links;
  if (linked.ok()) linked = RememberLinks(links);
  return back.ok() ? linked : back;
}

void EngineConfigurator::State::Apply() {
  journal.next = outcome.change.record;
  journal.files = outcome.change.files;
  if (const auto saved = Save(Phase::kWriting); !saved.ok()) return Finish(saved);
  if (const auto written = WriteAll(*files, journal.files); !written.ok())
    return Refuse(written.error());
  if (const auto linked = ApplyLinks(); !linked.ok()) return Refuse(linked.error());
  Check();
}

/// Lets the engine check the new files before it is asked to use them.
void EngineConfigurator::State::Check() {
  const auto self = shared_from_this();
  const CommandLine checking = major > 0 ? CheckCommand(install, major) : CommandLine();
  if (!checking.empty())
    return Run(checking, [self](const base::Result<os::Command::Outcome>& answer) {
      if (answer.ok() && answer->status != 0)
        return self->Refuse(Error(
            Code::kFailedPrecondition,
            self->install.name + " rejects it: " + LastLine(answer->output + answer->errors)));
      self->Start(true);
    });
  // What a supervisor makes of its files is visible only after it has started.
  if (!effect_before || install.style != ConfigStyle::kPlain) return Start(true);
  ReadEffect([self](const base::Result<std::optional<std::string>>& after) { self->Judge(after); });
}

void EngineConfigurator::State::Judge(const base::Result<std::optional<std::string>>& after) {
  if (!after.ok()) return Refuse(after.error());
  if (const auto right = CheckEffect(outcome.change, *effect_before, after->value_or(""));
      !right.ok())
    return Refuse(right.error());
  Start(!SameEffect(*effect_before, after->value_or("")));
}

/// The engine was not asked to restart: restoring the files is enough.
void EngineConfigurator::State::Refuse(const Error& why) {
  auto back = GoBack();
  if (back.ok()) back = Save(Phase::kDone);
  if (!back.ok())
    return Finish(
        why.Within("the old files could not be restored (" + back.error().message() + ") after"));
  Finish(Error(why.code(), why.message() + "; nothing was changed"));
}

/// Saves the final state in the journal.
void EngineConfigurator::State::Complete() {
  const Status linked = RememberLinks(links_wanted);
  Finish(linked.ok() ? Save(Phase::kDone) : linked);
}

void EngineConfigurator::State::Start(bool changed) {
  const auto self = shared_from_this();
  const auto complete = [self](const Status& status) {
    if (!status.ok()) return self->Return(status.error());
    self->journal.record = self->journal.next;
    self->Complete();
  };
  if (!changed) {
    Notify("the effective configuration of " + install.name + " is unchanged: no restart needed");
    return complete({});
  }
  if (install.engine == Engine::kPodman) return complete({});  // each invocation reads its files
  const bool runs = ListenerOf(options.proc_root, SocketHere(install)).ok();
  if (options.restart == Restart::kNone || !runs) {
    const std::string how = install.unit.empty() ? "" : ": systemctl restart " + install.unit;
    outcome.remarks.push_back(install.name + (runs
                                                  ? " reads it at its next restart" + how
                                                  : " is not running; it reads it when it starts"));
    return complete({});
  }
  if (const auto can = CanRestart(); !can.ok()) return Refuse(can.error());
  if (options.restart == Restart::kSignal && !(outcome.linked.empty() && outcome.unlinked.empty()))
    outcome.remarks.push_back(install.name +
                              " detects what `--gpus` needs only when it starts, not on a signal" +
                              (install.unit.empty() ? "" : ": systemctl restart " + install.unit));
  outcome.restarted = true;
  Restart(complete);
}

void EngineConfigurator::State::Run(CommandLine arguments, Answered then) {
  os::Command::Options run{
      .deadline = kAnswersWithin, .most_output = kMaxAnswer, .errors_apart = true};
  // systemctl waits for the unit to start, which may take long.
  if (arguments == RestartCommand(install)) run.deadline = options.patience;
  run.spawn.arguments = std::move(arguments);
  const auto self = shared_from_this();
  command = std::make_unique<os::Command>(
      loop, std::move(run),
      [self, then = std::move(then)](base::Result<os::Command::Outcome> answer) {
        if (self->done) then(std::move(answer));
      });
}

void EngineConfigurator::State::Finish(const Status& status) {
  lock.reset();
  loop.Post([self = shared_from_this(), status] {
    const Done call = std::exchange(self->done, nullptr);
    if (!call) return;
    if (status.ok()) return call(std::move(self->outcome));
    call(status.error());
  });
}

EngineConfigurator::EngineConfigurator(os::Loop& loop, EngineInstall install,
                                       ConfigureOptions options, ConfigureProgress progress,
                                       Done done)
    : state_(std::make_shared<State>(loop, std::move(install), std::move(options),
                                     std::move(progress), std::move(done))) {
  loop.Post([state = state_] {
    if (state->done) state->Begin();
  });
}

EngineConfigurator::~EngineConfigurator() {
  state_->done = nullptr;
  state_->loop.Cancel(std::exchange(state_->timer, 0));
  state_->command.reset();
}

base::Result<ConfigureResult> Configure(EngineInstall install, ConfigureOptions options,
                                        ConfigureProgress progress) {
  os::Loop loop("engine");
  std::optional<base::Result<ConfigureResult>> result;
  const EngineConfigurator run(loop, std::move(install), std::move(options), std::move(progress),
                               [&](base::Result<ConfigureResult> outcome) {
                                 result = std::move(outcome);
                                 loop.Stop();
                               });
  loop.Run();
  return *std::move(result);
}

}  // namespace penstock::protocol::engine
