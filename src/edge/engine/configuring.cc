// Repair, ask, plan, write, check.
#include "edge/engine/configuring.h"

#include <algorithm>

#include "edge/engine/configuring_state.h"
#include "edge/engine/line_diff.h"
#include "os/core/file.h"

namespace penstock::edge::engine {
namespace {

using base::Code;
using base::Error;
using base::Status;
using namespace std::chrono_literals;

constexpr base::Duration kAnswersWithin = 20s;
constexpr base::Duration kOthersFinishWithin = 10s;  // another run: of the agent, or by hand
constexpr base::Duration kTryAgain = 100ms;
constexpr std::size_t kMostAnswer = 4u << 20;

/// What an earlier wish said, with the new one on top.
Wish Joined(Wish wish, const Wish& added) {
  wish.cdi = wish.cdi || added.cdi;
  for (const Handler& handler : added.handlers) {
    std::erase_if(wish.handlers, [&handler](const Handler& one) { return one.name == handler.name; });
    wish.handlers.push_back(handler);
  }
  if (!added.default_handler.empty()) wish.default_handler = added.default_handler;
  return wish;
}

}  // namespace

void Configuring::State::Begin() {
  if (const auto opened = Open(); !opened.ok()) {
    if (opened.error().code() != Code::kAlreadyExists) return Finish(opened);
    if (until == base::TimePoint()) {
      until = loop.clock().Now() + kOthersFinishWithin;
      Tell("waiting for another run to end: " + opened.error().message());
    }
    if (loop.clock().Now() >= until) return Finish(opened);
    timer = loop.PostAfter(kTryAgain, [self = shared_from_this()] {
      self->timer = 0;
      self->Begin();
    });
    return;
  }
  if (journal.phase == Phase::kDone) return Ask();
  if (options.dry_run)
    return Finish(
        Error(Code::kFailedPrecondition, "an earlier change of " + site.name + " was interrupted: run it again without --dry-run first"));
  Repair();
}

Status Configuring::State::Open() {
  journal_path = JournalPath(site, options.state_dir);
  if (!options.dry_run) {
    TRY(os::MakeDirectories(options.state_dir));
    TRY(os::MakeDirectories(options.state_dir + "/engines", 0700));
    ASSIGN(lock, os::LockFile::Take(options.state_dir + "/engines/lock"));
  }
  ASSIGN(files, ConfigFiles::Open(site.root));
  ASSIGN(journal, LoadJournal(journal_path));
  ASSIGN(links, LoadLinks(LinksPath(journal_path)));
  links_wanted = links;
  journal.site = {site.name, site.config, site.drop_in, site.socket, site.program, site.unit};
  return {};
}

Status Configuring::State::Save(Phase phase) {
  journal.phase = phase;
  if (phase == Phase::kDone) {
    journal.next = {};
    journal.files.clear();
    journal.engine = {};
  }
  // Links alone are remembered by a journal as well, by which their engine is found again.
  return SaveJournal(journal_path, journal, !links_wanted.empty());
}

/// What a run that was killed left behind: before the engine was told, the files go back; after, the change is brought to its end.
void Configuring::State::Repair() {
  Tell("an interrupted change of " + site.name + " is repaired");
  const auto self = shared_from_this();
  const auto settled = [self](const Status& status) {
    if (!status.ok()) return self->Finish(status);
    if (const auto saved = self->Save(Phase::kDone); !saved.ok()) return self->Finish(saved);
    self->Ask();
  };
  if (journal.phase == Phase::kRestarting) {
    const auto then = [self, settled](const Status& status) {
      if (!status.ok()) return self->Return(status.error());
      self->journal.record = self->journal.next;
      settled({});
    };
    if (options.restart == Restart::kNone) return then({});
    return journal.engine.pid != 0 && IsAnew() ? Await(then) : StartAnew(then);
  }
  if (const auto back = PutBack(*files, journal.files, outcome.remarks); !back.ok()) return Finish(back);
  if (journal.phase == Phase::kReturning && options.restart != Restart::kNone) return StartAnew(settled);
  settled({});
}

void Configuring::State::Ask() {
  if (options.source == Source::kFile) return Plan(std::nullopt);
  const auto self = shared_from_this();
  Run(VersionCommand(site), [self](const base::Result<os::Command::Outcome>& answer) {
    const auto version = answer.ok() && answer->status == 0 ? ParseVersion(answer->output) : std::nullopt;
    if (version) {
      std::tie(self->major, self->minor) = *version;
      return self->AskEffect([self](const base::Result<std::optional<std::string>>& effect) {
        if (effect.ok()) return self->Plan(*effect);
        self->Finish(effect.error());
      });
    }
    const std::string why = answer.ok() ? "says \"" + LastLine(answer->output + answer->errors) + "\"" : answer.error().message();
    if (self->options.source == Source::kCommand)
      return self->Finish(Error(Code::kFailedPrecondition, self->site.program + " cannot be asked for its configuration: " + why +
                                                               "; say --executable-path, or --config-source file"));
    self->outcome.remarks.push_back(self->site.name + " itself could not be asked (" + why + "): its files decided alone");
    self->Plan(std::nullopt);
  });
}

/// Nothing where the engine has no such command, or was not to be asked.
void Configuring::State::AskEffect(std::function<void(base::Result<std::optional<std::string>>)> then) {
  const std::string& path = site.in_force.empty() ? site.config : site.in_force;
  const auto main = files->Read(path);
  if (!main.ok()) return then(main.error());
  const Arguments asking = EffectCommand(site, main->has_value());
  if (asking.empty() || major == 0) return then(std::optional<std::string>());
  Run(asking, [this, then = std::move(then)](base::Result<os::Command::Outcome> answer) {
    if (!answer.ok()) return then(answer.error());
    if (answer->status == 0) return then(std::optional(std::move(answer->output)));
    then(Error(Code::kFailedPrecondition, site.name + " refuses its configuration: " + LastLine(answer->errors + "\n" + answer->output)));
  });
}

void Configuring::State::Plan(std::optional<std::string> effect) {
  effect_before = effect;
  if (const auto planned = MakePlan(std::move(effect)); !planned.ok()) return Finish(planned);
  if (const auto planned = MakeLinkPlan(); !planned.ok()) return Finish(planned);
  for (const FileChange& file : outcome.change.files) outcome.diff += Unified(file.path, file.from, file.to);
  const auto shown = [](const Link& link) { return "link to " + link.target + "\n"; };
  for (const Link& link : outcome.unlinked) outcome.diff += Unified(link.path, shown(link), std::nullopt);
  for (const Link& link : outcome.linked) outcome.diff += Unified(link.path, std::nullopt, shown(link));
  outcome.remarks.insert(outcome.remarks.end(), outcome.change.remarks.begin(), outcome.change.remarks.end());
  if (!options.dry_run && !ChangesNothing()) return Carry();
  // What is remembered may change where no file does: the same lines by another wish.
  if (!options.dry_run) {
    journal.record = outcome.change.record;
    return Settle();
  }
  Finish({});
}

Status Configuring::State::MakePlan(std::optional<std::string> effect) {
  ASSIGN(gathered, Gather(site, *files, journal.record, major));
  gathered.facts.major = major;
  gathered.facts.minor = minor;
  gathered.facts.drop_in_wanted = options.drop_in_wanted;
  gathered.facts.effective = std::move(effect);
  const StandingOf stands = Stands(gathered.disk, journal.record);
  for (const std::string& one : stands.which) {
    if (options.respect)
      return Error(Code::kFailedPrecondition, "somebody changed what Penstock wrote (" + one +
                                                  "), which is left to them; `penstock runtime " +
                                                  "configure` writes it again, `penstock runtime unconfigure` forgets it");
    outcome.remarks.push_back("changed since Penstock wrote it: " + one);
  }
  ASSIGN(outcome.change, MakeChange(gathered.facts, gathered.disk, journal.record,
                                    options.beside ? Joined(journal.record.wish, options.wish) : options.wish));
  return {};
}

/// An engine that nothing is wished of any more has no links of ours either.
Status Configuring::State::MakeLinkPlan() {
  if (outcome.change.record.wish == Wish{}) {
    links_wanted.clear();
  } else if (options.links && site.engine == Engine::kDocker) {
    const auto look = [this](const std::string& path) { return Occupant{files->Holds(path), files->LinkTarget(path)}; };
    auto plan = PlanLinks(*options.links, LinkNames(major, minor), SearchPath(options.proc_root, Running().pid), links, look);
    links_wanted = std::move(plan.wanted);
    outcome.remarks.insert(outcome.remarks.end(), plan.remarks.begin(), plan.remarks.end());
    for (const Link& link : links_wanted)
      if (files->LinkTarget(link.path) != link.target) outcome.linked.push_back(link);
  }
  for (const Link& link : links)
    if (std::find(links_wanted.begin(), links_wanted.end(), link) == links_wanted.end() && files->LinkTarget(link.path) == link.target)
      outcome.unlinked.push_back(link);
  return {};
}

/// What is about to be made is remembered first: whoever finds the memory of a run that was killed finds what it made.
Status Configuring::State::CarryLinks() {
  std::vector<Link> both = links;
  both.insert(both.end(), outcome.linked.begin(), outcome.linked.end());
  TRY(RememberLinks(both));
  return MoveLinks(*files, outcome.unlinked, outcome.linked);
}

Status Configuring::State::RememberLinks(const std::vector<Link>& now) const {
  if (links.empty() && outcome.linked.empty()) return {};
  return SaveLinks(LinksPath(journal_path), now);
}

/// Files and links are again what they were before this run.
Status Configuring::State::GoBack() {
  const Status back = PutBack(*files, journal.files, outcome.remarks);
  Status linked = MoveLinks(*files, outcome.linked, outcome.unlinked);
  links_wanted = links;
  if (linked.ok()) linked = RememberLinks(links);
  return back.ok() ? linked : back;
}

void Configuring::State::Carry() {
  journal.next = outcome.change.record;
  journal.files = outcome.change.files;
  if (const auto saved = Save(Phase::kWriting); !saved.ok()) return Finish(saved);
  if (const auto written = WriteAll(*files, journal.files); !written.ok()) return Refuse(written.error());
  if (const auto linked = CarryLinks(); !linked.ok()) return Refuse(linked.error());
  Check();
}

/// The engine's own word on the new files, before anybody tells it to use them.
void Configuring::State::Check() {
  const auto self = shared_from_this();
  const Arguments checking = major > 0 ? CheckCommand(site, major) : Arguments();
  if (!checking.empty())
    return Run(checking, [self](const base::Result<os::Command::Outcome>& answer) {
      if (answer.ok() && answer->status != 0)
        return self->Refuse(
            Error(Code::kFailedPrecondition, self->site.name + " refuses it: " + LastLine(answer->output + answer->errors)));
      self->Start(true);
    });
  // What a supervisor makes of its files is to be seen only once it has started.
  if (!effect_before || site.manner != Manner::kPlain) return Start(true);
  AskEffect([self](const base::Result<std::optional<std::string>>& after) { self->Judge(after); });
}

void Configuring::State::Judge(const base::Result<std::optional<std::string>>& after) {
  if (!after.ok()) return Refuse(after.error());
  if (const auto right = CheckEffect(outcome.change, *effect_before, after->value_or("")); !right.ok()) return Refuse(right.error());
  Start(!SameEffect(*effect_before, after->value_or("")));
}

/// The engine was not told: files go back, and that was all.
void Configuring::State::Refuse(const Error& why) {
  auto back = GoBack();
  if (back.ok()) back = Save(Phase::kDone);
  if (!back.ok()) return Finish(why.Within("the old files could not be put back (" + back.error().message() + ") after"));
  Finish(Error(why.code(), why.message() + "; nothing was changed"));
}

/// All is done, and what there is now is remembered.
void Configuring::State::Settle() {
  const Status linked = RememberLinks(links_wanted);
  Finish(linked.ok() ? Save(Phase::kDone) : linked);
}

void Configuring::State::Start(bool changed) {
  const auto self = shared_from_this();
  const auto settle = [self](const Status& status) {
    if (!status.ok()) return self->Return(status.error());
    self->journal.record = self->journal.next;
    self->Settle();
  };
  if (!changed) {
    Tell("what is in force in " + site.name + " stays as it was: it need not start anew");
    return settle({});
  }
  if (site.engine == Engine::kPodman) return settle({});  // each run reads its files
  const bool runs = ListenerOf(options.proc_root, SocketHere(site)).ok();
  if (options.restart == Restart::kNone || !runs) {
    const std::string how = site.unit.empty() ? "" : ": systemctl restart " + site.unit;
    outcome.remarks.push_back(site.name + (runs ? " reads it when it starts anew" + how : " does not run now; it reads it when it starts"));
    return settle({});
  }
  if (const auto can = CanStartAnew(); !can.ok()) return Refuse(can.error());
  if (options.restart == Restart::kSignal && !(outcome.linked.empty() && outcome.unlinked.empty()))
    outcome.remarks.push_back(site.name + " looks for what `--gpus` needs only when it starts, not at a signal" +
                              (site.unit.empty() ? "" : ": systemctl restart " + site.unit));
  outcome.restarted = true;
  StartAnew(settle);
}

void Configuring::State::Run(Arguments arguments, Answered then) {
  os::Command::Options run{.deadline = kAnswersWithin, .most_output = kMostAnswer, .errors_apart = true};
  // A unit may take its time to start, which systemctl waits for.
  if (arguments == RestartCommand(site)) run.deadline = options.patience;
  run.spawn.arguments = std::move(arguments);
  const auto self = shared_from_this();
  command = std::make_unique<os::Command>(loop, std::move(run), [self, then = std::move(then)](base::Result<os::Command::Outcome> answer) {
    if (self->done) then(std::move(answer));
  });
}

void Configuring::State::Finish(const Status& status) {
  lock.reset();
  loop.Post([self = shared_from_this(), status] {
    const Done call = std::exchange(self->done, nullptr);
    if (!call) return;
    if (status.ok()) return call(std::move(self->outcome));
    call(status.error());
  });
}

Configuring::Configuring(os::Loop& loop, Site site, ConfigureOptions options, Progress progress, Done done)
    : state_(std::make_shared<State>(loop, std::move(site), std::move(options), std::move(progress), std::move(done))) {
  loop.Post([state = state_] {
    if (state->done) state->Begin();
  });
}

Configuring::~Configuring() {
  state_->done = nullptr;
  state_->loop.Cancel(std::exchange(state_->timer, 0));
  state_->command.reset();
}

base::Result<Configured> Configure(Site site, ConfigureOptions options, Progress progress) {
  os::Loop loop("engine");
  std::optional<base::Result<Configured>> result;
  const Configuring run(loop, std::move(site), std::move(options), std::move(progress), [&](base::Result<Configured> outcome) {
    result = std::move(outcome);
    loop.Stop();
  });
  loop.Run();
  return *std::move(result);
}

}  // namespace penstock::edge::engine
