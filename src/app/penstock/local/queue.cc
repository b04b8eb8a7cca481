// `penstock queue`: lists the runs that wait for GPUs, and removes runs from the queue, through the
// agent.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "app/penstock/common/table.h"
#include "app/penstock/common/verbs.h"
#include "base/core/clock.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"
#include "protocol/broker/client.h"
#include "protocol/broker/protocol.h"

namespace penstock::app {
namespace {

using protocol::broker::WaitingRun;

constexpr command::NamePath kNames{"run", ".queue[*].ticket"};

constexpr char kQueueExamples[] =
    R"(penstock queue                 # the queued runs, in order
penstock queue -o json
penstock queue -w              # again whenever it changes
penstock queue cancel q-7      # your own, or as root any user's)";

/// Formats a request: "2 A100*", "0,3", "2 x 1g.5gb", "1 with 20 GiB"; for shares "1/4", "2 x 1/4
/// A100*", "1/4 of 0,3".
std::string Wants(const WaitingRun& run) {
  const std::string share = run.share > 1 ? "1/" + std::to_string(run.share) : "";
  if (!run.devices.empty())
    return (share.empty() ? "" : share + " of ") + base::Join(run.devices, ",");
  const std::string count = std::to_string(run.count);
  std::string what = share.empty() ? count : run.count == 1 ? share : count + " x " + share;
  if (!run.profile.empty()) what += (share.empty() ? " x " : " of ") + run.profile;
  if (run.min_memory.count > 0) what += " with " + base::FormatBytes(run.min_memory);
  if (!run.vendor.empty()) what += " of " + run.vendor;
  return what + (run.model.empty() ? "" : " " + run.model);
}

/// The expected time until the start, from the time limits that the holders declared; empty:
/// unknown.
std::string StartsIn(const WaitingRun& run, base::WallTime now) {
  if (run.expected_start.empty()) return "";
  return base::FormatDuration(
      std::max<base::Duration>(base::ParseTime(run.expected_start) - now, base::Duration::zero()));
}

std::string ShowQueue(const std::vector<WaitingRun>& queue, const Style& style) {
  if (queue.empty()) return "no runs are queued";
  const base::WallTime now = std::chrono::system_clock::now();
  Table table({"TICKET", "USER", "GPUS", "TIME", "SINCE", "STARTS IN", "COMMAND", "WAITS FOR"});
  for (const WaitingRun& run : queue)
    table.Add({run.ticket, run.user, Wants(run), run.time ? base::FormatDuration(*run.time) : "",
               base::FormatDuration(now - base::ParseTime(run.since)), StartsIn(run, now),
               run.command.substr(0, 40), run.reason});
  return table.Render(style);
}

base::Result<std::string> Send(const Common& common, const protocol::broker::Request& request) {
  ASSIGN(const auto config, Resolve(common.settings));
  ASSIGN(auto client, protocol::broker::Client::Connect(config.paths.run_dir));
  return client.Query(EncodeRequest(request));
}

base::Result<Shown> ListRuns(const Common& common) {
  ASSIGN(const std::string reply, Send(common, {.operation = protocol::broker::Operation::kQueue}));
  if (common.json()) return Shown(reply);
  ASSIGN(const auto queue, protocol::broker::DecodeQueue(reply));
  return Shown(ShowQueue(queue, common.style()));
}

base::Result<Shown> Cancel(const Common& common, const std::string& ticket) {
  ASSIGN(const std::string reply,
         Send(common, {.operation = protocol::broker::Operation::kCancel, .ticket = ticket}));
  return Shown(common.json() ? reply : ticket + " is cancelled");
}

}  // namespace

Verb QueueVerb(const Common& common) {
  const auto ticket = std::make_shared<std::string>();
  const auto list = [&common] { return ListRuns(common); };
  const std::string exit_status = "0 done, 1 not done (the message says why)";
  return {.name = "queue",
          .summary = "Show the runs that wait for GPUs, or cancel one",
          .examples = kQueueExamples,
          .details =
              "STARTS IN is known if the holders of the GPUs declared how long they run (penstock "
              "run --time).",
          .exit_status = exit_status,
          .verbs = {{.name = "list",
                     .summary = "Show the queued runs, in order",
                     .examples = "penstock queue list -o json",
                     .exit_status = exit_status,
                     .shares = AgentOptionNames(),
                     .formats = command::TableFormats(),
                     .names = kNames,
                     .watch = true,
                     .show = list},
                    {.name = "cancel",
                     .summary = "Cancel a queued run",
                     .examples = "penstock queue cancel q-7",
                     .exit_status = exit_status,
                     .options = {Argument("TICKET", ticket.get(),
                                          "the run's ticket, as `penstock queue` shows it")
                                     .Required()},
                     .shares = AgentOptionNames(),
                     .formats = command::PlainFormats(),
                     .show = [ticket, &common] { return Cancel(common, *ticket); }}},
          .shares = AgentOptionNames(),
          .formats = command::TableFormats(),
          .names = kNames,
          .watch = true,
          .show = list};
}

}  // namespace penstock::app
