#include "app/penstock/mig/mig_apply.h"

#include <iostream>
#include <string>
#include <vector>

#include "app/penstock/mig/mig_direct.h"
#include "app/penstock/mig/mig_hooks.h"
#include "app/penstock/mig/mig_interrupt.h"
#include "app/penstock/mig/mig_machine.h"
#include "node/change/divisions.h"
#include "protocol/broker/client.h"
#include "protocol/broker/protocol.h"

namespace penstock::app {
namespace {

using protocol::broker::DivideProgress;

constexpr base::Duration kMargin = std::chrono::minutes(1);  // for the answer to a division's end

/// "GPU 3: dividing: create 1g.5gb at slice 2 (3 of 7)".
std::string InWords(const DivideProgress& gpu) {
  return "GPU " + gpu.number + ": " + gpu.state + (gpu.reason.empty() ? "" : ": " + gpu.reason);
}

/// What is going on, on standard error.
void ShowProgress(const Common& common, const DivideProgress& gpu) {
  if (!common.as_mig_parted || common.debug) std::cerr << Printable(InWords(gpu)) << std::endl;
}

Result<std::vector<DivideProgress>> DivideByAgent(const Common& common, const ApplyRequest& request,
                                                  const Interruption& interruption,
                                                  protocol::broker::Client& client) {
  client.InterruptBy(interruption.fd());
  protocol::broker::Request line;
  line.operation = protocol::broker::Operation::kDivide;
  line.divide = {.layout = EncodeLayout(request.layout),
                 .mode_only = request.mode_only,
                 .skip_reset = request.skip_reset,
                 .wait = request.wait};
  TRY(client.SendLine(EncodeRequest(line)));
  for (;;) {
    // Without progress, apart from the wait for holders.
    const auto answer = client.ReadLine(node::change::kDividesWithin + kMargin +
                                        request.wait.value_or(base::Duration::zero()));
    if (!answer.ok() && answer.error().code() == Code::kCancelled)
      return Error(Code::kCancelled, "interrupted: the agent goes on dividing the GPUs");
    if (!answer.ok()) return answer.error();
    ASSIGN(auto decoded, protocol::broker::DecodeDivideAnswer(*answer));
    if (decoded.dividing) ShowProgress(common, *decoded.dividing);
    if (decoded.divided) return *std::move(decoded.divided);
  }
}

Result<std::vector<DivideProgress>> DivideByAnyone(const Common& common,
                                                   const ApplyRequest& request,
                                                   const Interruption& interruption) {
  if (interruption.signal() != 0)
    return Error(Code::kCancelled, "interrupted before a GPU was changed");
  ASSIGN(const api::NodeConfig config, Resolve(common.settings));
  auto client = protocol::broker::Client::Connect(config.paths.run_dir);
  if (client.ok()) return DivideByAgent(common, request, interruption, *client);
  if (client.error().code() != Code::kUnavailable) return client.error();
  if (!common.as_mig_parted)
    Remark(
        NameCalled(common),
        "no agent runs: this process divides the GPUs, and after a reboot they are as the driver "
        "has them");
  auto divided = DivideDirectly(common, config, request, interruption,
                                [&](const DivideProgress& gpu) { ShowProgress(common, gpu); });
  if (divided.ok()) return divided;
  return divided.error().Within("without an agent");
}

Result<Shown> Divide(const Common& common, const ApplyRequest& request,
                     const Interruption& interruption) {
  ASSIGN(const auto divided, DivideByAnyone(common, request, interruption));
  if (common.json()) return Shown(protocol::broker::EncodeDivided(divided));
  std::string text;
  for (const DivideProgress& gpu : divided)
    if (gpu.state != "unselected") text += Printable(InWords(gpu)) + "\n";
  return Shown(text);
}

/// Unlike mig-parted, which changes the mode before it looks at the rest: here both are one change.
Result<Shown> DivideAfterHooks(const Common& common, const ApplyRequest& request,
                               const Interruption& interruption, const MigHookRunner& hooks) {
  ASSIGN(const MigMachine machine, LookAtMachine(common));
  std::vector<std::string> remarks;
  ASSIGN(const auto modes, WhyNotApplied(machine, request.layout, true, remarks));
  if (!modes.empty()) TRY(hooks.Run(api::compat::kPreApplyMode));
  ASSIGN(const auto all, WhyNotApplied(machine, request.layout, false, remarks));
  if (!request.mode_only && !all.empty()) TRY(hooks.Run(api::compat::kPreApplyConfig));
  return Divide(common, request, interruption);
}

Result<Shown> ApplyWithHooks(const Common& common, const ApplyRequest& request,
                             Interruption& interruption) {
  if (request.hooks_file.empty()) return Divide(common, request, interruption);
  ASSIGN(
      const auto hooks,
      MigHookRunner::Open(request.hooks_file, {.environment = request.hook_environment,
                                               .show_output = !common.as_mig_parted || common.debug,
                                               .interruption = &interruption}));
  const base::Status started = hooks.Run(api::compat::kApplyStart);
  // A hook that failed has put right what it did; one that a signal ended has not.
  if (!started.ok() && started.error().code() != Code::kCancelled) return started.error();
  auto divided = started.ok() ? DivideAfterHooks(common, request, interruption, hooks)
                              : Result<Shown>(started.error());
  const base::Status exited = hooks.Run(api::compat::kApplyExit);
  if (exited.ok()) return divided;
  if (divided.ok()) return exited.error();
  Remark(NameCalled(common), exited.error().message());
  return divided;
}

}  // namespace

Result<Shown> ApplyMigLayout(const Common& common, const ApplyRequest& request) {
  Interruption interruption;
  auto applied = ApplyWithHooks(common, request, interruption);
  if (interruption.signal() == 0) return applied;
  if (!applied.ok()) Remark(NameCalled(common), applied.error().message());
  interruption.End();
}

}  // namespace penstock::app
