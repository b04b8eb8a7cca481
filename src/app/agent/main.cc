// penstock-agent: parses the options and runs the agent.
#include <algorithm>
#include <iostream>
#include <vector>

#include <malloc.h>

#include "api/compat/nvidia/exporter_options.h"
#include "app/agent/agent.h"
#include "app/agent_command.h"
#include "app/command/parse.h"
#include "app/kept_configuration.h"
#include "base/log.h"
#include "os/process/process.h"

namespace penstock::app {
namespace {

int Start(AgentCommandLine line) {
  Settings& settings = line.settings;
  TakeEnvironment(settings, ::getenv);
  std::vector<api::compat::Given> exporter = settings.exporter_environment;
  exporter.insert(exporter.end(), settings.exporter_flags.begin(), settings.exporter_flags.end());
  const bool verbose = line.verbose || api::compat::SaysDebug(exporter);
  base::StartLog("penstock-agent", verbose ? base::kDebug : base::kInfo);
  auto start = ResolveForStart(settings);
  if (!start.ok()) {
    std::cerr << start.error().message() << "\n";
    return 1;
  }
  if (line.worker.empty()) line.worker = os::OwnFolder() + "/penstock-worker";
  return RunAgent({.settings = std::move(settings),
                   .start = *std::move(start),
                   .worker = line.worker,
                   .wait_for_lock = !line.no_wait});
}

int Main(int argc, char** argv) {
  AgentCommandLine line;
  command::Output unused;
  command::Verb agent = AgentCommand(line);
  agent.run = [&line] { return Start(std::move(line)); };
  return command::Run(
      agent,
      api::compat::FromGoFlags(std::vector<std::string>(argv + std::min(argc, 1), argv + argc)),
      unused);
}

}  // namespace
}  // namespace penstock::app

int main(int argc, char** argv) {
  // Each gRPC thread would keep a heap of its own, as large as a burst of calls once needed: 3 MiB
  // more after 64 calls at a time, without being faster.
  ::mallopt(M_ARENA_MAX, 1);
  // Pages and states of some hundred KiB come and go. They are mapped outside the heap, in which
  // they would leave holes. Without this setting malloc raises the threshold when the first of them
  // is freed.
  ::mallopt(M_MMAP_THRESHOLD, 128 << 10);
  return penstock::app::Main(argc, argv);
}
