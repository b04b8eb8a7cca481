// The engine starts anew, is waited for and, where it does not come back, started with its old files.
#include <csignal>

#include "edge/engine/configuring_state.h"
#include "os/process.h"

namespace penstock::edge::engine {
namespace {

using base::Code;
using base::Error;
using base::Status;
using namespace std::chrono_literals;

constexpr base::Duration kLookAgain = 100ms;

}  // namespace

Identity Configuring::State::Running() const {
  const auto pid = ListenerOf(options.proc_root, SocketHere(site));
  if (!pid.ok() || *pid == 0) return {};
  const auto start = os::ReadProcessStart(options.proc_root, *pid);
  return start.ok() ? Identity{*pid, *start} : Identity{};
}

/// Another process listens than the one that ran before. Who cannot be seen, or has systemd listen for it, is believed to.
bool Configuring::State::IsAnew() const {
  const Identity now = Running();
  const bool stays = options.restart == Restart::kSignal && site.engine != Engine::kContainerd;
  return stays || now.pid <= 1 || now != journal.engine;
}

Status Configuring::State::CanStartAnew() const {
  if (options.restart == Restart::kSignal && Running().pid <= 1)
    return Error(Code::kFailedPrecondition, "who is to get the signal for " + site.name + " cannot be seen: say --restart-mode none");
  if (options.restart == Restart::kSystemd && site.unit.empty())
    return Error(Code::kFailedPrecondition, "no systemd unit of " + site.name + " is known: say --restart-mode none");
  return {};
}

void Configuring::State::StartAnew(Next next) {
  journal.engine = Running();
  // An engine that goes back to its old files is remembered as that already.
  if (const auto saved = Save(journal.phase == Phase::kReturning ? Phase::kReturning : Phase::kRestarting); !saved.ok()) return next(saved);
  Tell(site.name + " starts anew");
  if (options.restart == Restart::kSignal) {
    // Who ended with the new files is started with the old ones by whoever watches it.
    if (journal.phase == Phase::kReturning && journal.engine.pid == 0) return Await(std::move(next));
    if (const auto can = CanStartAnew(); !can.ok()) return next(can);
    if (::kill(journal.engine.pid, SIGHUP) != 0) return next(base::ErrnoError(errno, "signal " + site.name));
    return Await(std::move(next));
  }
  if (const auto can = CanStartAnew(); !can.ok()) return next(can);
  Run(RestartCommand(site), [self = shared_from_this(), next = std::move(next)](const base::Result<os::Command::Outcome>& answer) {
    if (!answer.ok()) return next(answer.error());
    if (answer->status != 0)
      return next(Error(Code::kUnavailable, self->site.unit + " does not start: " + LastLine(answer->output + "\n" + answer->errors)));
    self->Await(next);
  });
}

void Configuring::State::Await(Next next) {
  until = loop.clock().Now() + options.patience;
  Retry(Error(Code::kUnavailable, "nobody listens at " + site.socket), std::move(next));
}

/// Looks at once, and again as long as there is time.
void Configuring::State::Retry(const Error& last, Next next) {
  const bool listens = ListenerOf(options.proc_root, SocketHere(site)).ok();
  if (listens && IsAnew()) return AskHealth(std::move(next));
  if (loop.clock().Now() >= until)
    return next(Error(Code::kUnavailable, site.name + " is not there again after " + base::FormatDuration(options.patience) + ": " +
                                              (listens ? "the process that ran before still listens" : last.message())));
  timer = loop.PostAfter(kLookAgain, [self = shared_from_this(), last, next = std::move(next)] {
    self->timer = 0;
    self->Retry(last, next);
  });
}

void Configuring::State::AskHealth(Next next) {
  const auto self = shared_from_this();
  const Arguments asking = HealthCommand(site);
  const auto healthy = [self, next] {
    // What a supervisor made of its files is to be seen now.
    if (self->journal.phase != Phase::kRestarting || !self->effect_before || self->site.manner == Manner::kPlain) return next({});
    self->AskEffect([self, next](const base::Result<std::optional<std::string>>& after) {
      if (!after.ok()) return next(after.error());
      next(CheckEffect(self->outcome.change, *self->effect_before, after->value_or("")));
    });
  };
  if (asking.empty()) return healthy();
  Run(asking, [self, next, healthy](const base::Result<os::Command::Outcome>& answer) {
    if (!answer.ok() && answer.error().code() == Code::kNotFound) return healthy();
    const auto illness = answer.ok() ? Illness(self->site, answer->status, answer->output + answer->errors) : answer.error().message();
    if (!illness) return healthy();
    const Error error(Code::kUnavailable, self->site.name + " listens, but " + *illness);
    if (self->loop.clock().Now() >= self->until || answer->status == 0) return next(error);
    self->timer = self->loop.PostAfter(kLookAgain, [self, error, next] {
      self->timer = 0;
      self->Retry(error, next);
    });
  });
}

void Configuring::State::Return(const Error& why) {
  Tell(site.name + " did not come back: its old files are put back");
  const auto self = shared_from_this();
  Status back = Save(Phase::kReturning);
  if (back.ok()) back = GoBack();
  if (!back.ok()) return Finish(why.Within("the old files could not be put back (" + back.error().message() + ") after"));
  const auto started = [self, why](Status status) {
    if (status.ok()) status = self->Save(Phase::kDone);
    if (status.ok()) return self->Finish(Error(Code::kAborted, why.message() + "; the old configuration is in force again"));
    self->Finish(Error(Code::kAborted, why.message() + "; the old files are back, but with them " + status.error().message()));
  };
  if (options.restart == Restart::kSignal || site.unit.empty()) return StartAnew(started);
  // systemd does not start a unit that failed too often until it is told to forget that.
  Run(ForgiveCommand(site), [self, started](const base::Result<os::Command::Outcome>&) { self->StartAnew(started); });
}

}  // namespace penstock::edge::engine
