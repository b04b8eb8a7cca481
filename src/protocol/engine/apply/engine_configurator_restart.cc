// Restarts the engine, waits for it and, if it does not come back, restarts it with its old files.
#include <csignal>

#include "os/process/process.h"
#include "protocol/engine/apply/engine_configurator_state.h"

namespace penstock::protocol::engine {
namespace {

using namespace std::chrono_literals;

constexpr base::Duration kPollInterval = 100ms;

}  // namespace

ProcessIdentity EngineConfigurator::State::Running() const {
  const auto pid = ListenerOf(options.proc_root, SocketHere(install));
  if (!pid.ok() || *pid == 0) return {};
  const auto start = os::ReadProcessStart(options.proc_root, *pid);
  return start.ok() ? ProcessIdentity{*pid, *start} : ProcessIdentity{};
}

/// Returns whether another process listens than before the restart. Assumes so if the listener
/// cannot be seen, or if systemd listens for it.
bool EngineConfigurator::State::IsAgain() const {
  const ProcessIdentity now = Running();
  const bool stays = options.restart == Restart::kSignal && install.engine != Engine::kContainerd;
  return stays || now.pid <= 1 || now != journal.engine;
}

Status EngineConfigurator::State::CanRestart() const {
  if (options.restart == Restart::kSignal && Running().pid <= 1)
    return Error(Code::kFailedPrecondition, "the process to signal for " + install.name +
                                                " cannot be determined: pass --restart-mode none");
  if (options.restart == Restart::kSystemd && install.unit.empty())
    return Error(Code::kFailedPrecondition,
                 "no systemd unit of " + install.name + " is known: pass --restart-mode none");
  return {};
}

void EngineConfigurator::State::Restart(Next next) {
  journal.engine = Running();
  // A journal in kReturning keeps this phase: the engine already returns to its old files.
  if (const auto saved =
          Save(journal.phase == Phase::kReturning ? Phase::kReturning : Phase::kRestarting);
      !saved.ok())
    return next(saved);
  Notify(install.name + " is restarting");
  if (options.restart == Restart::kSignal) {
    // If the engine ended with the new files, its supervisor starts it with the old ones.
    if (journal.phase == Phase::kReturning && journal.engine.pid == 0)
      return Await(std::move(next));
    if (const auto can = CanRestart(); !can.ok()) return next(can);
    if (::kill(journal.engine.pid, SIGHUP) != 0)
      return next(base::ErrnoError(errno, "signal " + install.name));
    return Await(std::move(next));
  }
  if (const auto can = CanRestart(); !can.ok()) return next(can);
  Run(RestartCommand(install), [self = shared_from_this(), next = std::move(next)](
                                   const base::Result<os::Command::Outcome>& answer) {
    if (!answer.ok()) return next(answer.error());
    if (answer->status != 0)
      return next(Error(Code::kUnavailable, self->install.unit + " did not start: " +
                                                LastLine(answer->output + "\n" + answer->errors)));
    self->Await(next);
  });
}

void EngineConfigurator::State::Await(Next next) {
  until = loop.clock().Now() + options.patience;
  Retry(Error(Code::kUnavailable, "no process listens at " + install.socket), std::move(next));
}

/// Checks at once, and again until the time is over.
void EngineConfigurator::State::Retry(const Error& last, Next next) {
  const bool listens = ListenerOf(options.proc_root, SocketHere(install)).ok();
  if (listens && IsAgain()) return QueryHealth(std::move(next));
  if (loop.clock().Now() >= until)
    return next(Error(Code::kUnavailable,
                      install.name + " did not return within " +
                          base::FormatDuration(options.patience) + ": " +
                          (listens ? "the old process still listens" : last.message())));
  timer = loop.PostAfter(kPollInterval, [self = shared_from_this(), last, next = std::move(next)] {
    self->timer = 0;
    self->Retry(last, next);
  });
}

void EngineConfigurator::State::QueryHealth(Next next) {
  const auto self = shared_from_this();
  const CommandLine query = HealthCommand(install);
  const auto healthy = [self, next] {
    // What a supervisor made of its files is visible now.
    if (self->journal.phase != Phase::kRestarting || !self->effect_before ||
        self->install.style == ConfigStyle::kPlain)
      return next({});
    self->ReadEffect([self, next](const base::Result<std::optional<std::string>>& after) {
      if (!after.ok()) return next(after.error());
      next(CheckEffect(self->outcome.change, *self->effect_before, after->value_or("")));
    });
  };
  if (query.empty()) return healthy();
  Run(query, [self, next, healthy](const base::Result<os::Command::Outcome>& answer) {
    if (!answer.ok() && answer.error().code() == Code::kNotFound) return healthy();
    const auto problem =
        answer.ok() ? HealthProblem(self->install, answer->status, answer->output + answer->errors)
                    : answer.error().message();
    if (!problem) return healthy();
    const Error error(Code::kUnavailable, self->install.name + " listens, but " + *problem);
    if (self->loop.clock().Now() >= self->until || answer->status == 0) return next(error);
    self->timer = self->loop.PostAfter(kPollInterval, [self, error, next] {
      self->timer = 0;
      self->Retry(error, next);
    });
  });
}

void EngineConfigurator::State::Return(const Error& why) {
  Notify(install.name + " did not recover: restoring its old files");
  const auto self = shared_from_this();
  Status back = Save(Phase::kReturning);
  if (back.ok()) back = GoBack();
  if (!back.ok())
    return Finish(
        why.Within("the old files could not be restored (" + back.error().message() + ") after"));
  const auto started = [self, why](Status status) {
    if (status.ok()) status = self->Save(Phase::kDone);
    if (status.ok())
      return self->Finish(
          Error(Code::kAborted, why.message() + "; the old configuration is in force again"));
    self->Finish(Error(Code::kAborted, why.message() +
                                           "; the old files were restored, but with them " +
                                           status.error().message()));
  };
  if (options.restart == Restart::kSignal || install.unit.empty()) return Restart(started);
  // systemd does not start a unit that failed too often until its failure count is reset.
  Run(ResetFailedCommand(install),
      [self, started](const base::Result<os::Command::Outcome>&) { self->Restart(started); });
}

}  // namespace penstock::protocol::engine
