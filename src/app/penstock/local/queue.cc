// `penstock queue`: lists the runs that wait for GPUs, and removes runs from the queue, through the
// agent.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "app/penstock/common/table.h"
#include "app/penstock/common/verbs.h"
#include "base/core/clock.h"
#include "base/core/strings.h"
#include "protocol/broker/client.h"
#include "protocol/broker/protocol.h"

namespace penstock::app {
namespace {

using protocol::broker::WaitingRun;

constexpr char kFooter[] = R"(Examples:
  penstock queue                 # the queued runs, in order
  penstock queue -o json
  penstock queue cancel q-7      # your own, or as root any user's

STARTS IN is known if the holders of the GPUs declared how long they run (penstock run --time).

Exit status: 0 done, 1 not done (the message says why).)";

/// Formats a request: "2 A100*", "0,3"; for shares "1/4", "2 x 1/4 A100*", "1/4 of 0,3".
std::string Wants(const WaitingRun& run) {
  const std::string share = run.share > 1 ? "1/" + std::to_string(run.share) : "";
  if (!run.devices.empty())
    return (share.empty() ? "" : share + " of ") + base::Join(run.devices, ",");
  const std::string count = std::to_string(run.count);
  const std::string what = share.empty() ? count : run.count == 1 ? share : count + " x " + share;
  return what + (run.model.empty() ? "" : " " + run.model);
}

/// The expected time until the start, from the time limits that the holders declared; empty:
/// unknown.
std::string StartsIn(const WaitingRun& run, base::WallTime now) {
  if (run.expected_start.empty()) return "";
  return base::FormatDuration(
      std::max<base::Duration>(base::ParseTime(run.expected_start) - now, base::Duration::zero()));
}

void Print(const std::vector<WaitingRun>& queue) {
  if (queue.empty()) {
    std::cout << "no runs are queued\n";
    return;
  }
  const base::WallTime now = std::chrono::system_clock::now();
  Table table({"TICKET", "USER", "GPUS", "TIME", "SINCE", "STARTS IN", "COMMAND", "WAITS FOR"});
  for (const WaitingRun& run : queue)
    table.Add({run.ticket, run.user, Wants(run), run.time ? base::FormatDuration(*run.time) : "",
               base::FormatDuration(now - base::ParseTime(run.since)), StartsIn(run, now),
               run.command.substr(0, 40), run.reason});
  std::cout << table.Render(StyleOf(STDOUT_FILENO));
}

base::Result<std::string> Send(const Common& common, const protocol::broker::Request& request) {
  ASSIGN(const auto config, Resolve(common.settings));
  ASSIGN(auto client, protocol::broker::Client::Connect(config.paths.run_dir));
  return client.Query(EncodeRequest(request));
}

base::Status List(const Common& common) {
  ASSIGN(const std::string reply, Send(common, {.operation = protocol::broker::Operation::kQueue}));
  if (common.json) {
    std::cout << reply << "\n";
    return {};
  }
  ASSIGN(const auto queue, protocol::broker::DecodeQueue(reply));
  Print(queue);
  return {};
}

base::Status Cancel(const Common& common, const std::string& ticket) {
  ASSIGN(const std::string reply,
         Send(common, {.operation = protocol::broker::Operation::kCancel, .ticket = ticket}));
  std::cout << (common.json ? reply : ticket + " is cancelled") << "\n";
  return {};
}

int ToExitCode(const base::Status& status) {
  if (status.ok()) return 0;
  std::cerr << "penstock: " << status.error().message() << "\n";
  return 1;
}

}  // namespace

void AddQueue(CLI::App& app, const Common& common, int& exit_code) {
  CLI::App* queue = app.add_subcommand("queue", "Show the runs that wait for GPUs, or cancel one");
  queue->footer(kFooter);
  queue->fallthrough();
  queue->require_subcommand(0, 1);
  queue->add_subcommand("list", "Shows the queued runs, in order")->fallthrough();
  CLI::App* cancel = queue->add_subcommand("cancel", "Cancels a queued run")->fallthrough();
  const auto ticket = std::make_shared<std::string>();
  cancel->add_option("TICKET", *ticket, "The run's ticket, as `penstock queue` shows it")
      ->required();
  queue->callback([cancel, ticket, &common, &exit_code] {
    exit_code = ToExitCode(cancel->parsed() ? Cancel(common, *ticket) : List(common));
  });
}

}  // namespace penstock::app
