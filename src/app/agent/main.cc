// penstock-agent: parses the options and runs the agent.
#include <algorithm>
#include <iostream>
#include <vector>

#include <CLI/CLI.hpp>
#include <malloc.h>

#include "api/compat/nvidia/exporter_options.h"
#include "app/agent/agent.h"
#include "app/kept_configuration.h"
#include "app/options.h"
#include "base/log.h"
#include "os/process/process.h"

namespace penstock::app {
namespace {

constexpr char kFooter[] = R"(Examples:
  penstock-agent                                     # this machine's own accelerators
  penstock-agent --config /etc/penstock/node.yaml
  penstock-agent --driver-root /run/nvidia/driver --listen off

Exit status: 0 stopped on request; 1 cannot start (see the log); 2 usage error.)";

int Main(int argc, char** argv) {
  CLI::App app(
      "The agent of one node: discovers its accelerators, offers them to the kubelet and to local "
      "programs, and tracks their holders.\n"
      "Start it with `penstock up`, or directly from a systemd unit or a DaemonSet.",
      "penstock-agent");
  app.set_version_flag("-v,--version", std::string("penstock-agent ") + PENSTOCK_VERSION);
  app.footer(kFooter);
  Settings settings;
  AddNodeOptions(app, settings);
  AddPluginOptions(app, settings);
  AddExporterOptions(app, settings);
  bool no_wait = false, verbose = false;
  std::string worker;
  app.add_flag("--no-wait", no_wait,
               "Fail at once if another agent is running, instead of waiting for its lock");
  app.add_flag("--verbose", verbose, "Log debug messages");
  app.add_option("--worker", worker,
                 "Path of the worker program (default: penstock-worker beside this program)");
  std::vector<std::string> arguments =
      api::compat::FromGoFlags(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  std::reverse(arguments.begin(), arguments.end());  // the order that CLI11 expects
  try {
    app.parse(std::move(arguments));
  } catch (const CLI::ExtrasError&) {
    std::cerr << DescribeUnknown(app, app.remaining()) << "\n";
    return 2;
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);
    return status == 0 ? 0 : 2;
  }
  TakeEnvironment(settings, ::getenv);
  std::vector<api::compat::Given> exporter = settings.exporter_environment;
  exporter.insert(exporter.end(), settings.exporter_flags.begin(), settings.exporter_flags.end());
  verbose = verbose || api::compat::SaysDebug(exporter);
  base::StartLog("penstock-agent", verbose ? base::kDebug : base::kInfo);
  auto start = ResolveForStart(settings);
  if (!start.ok()) {
    std::cerr << start.error().message() << "\n";
    return 1;
  }
  if (worker.empty()) worker = os::OwnFolder() + "/penstock-worker";
  return RunAgent({.settings = std::move(settings),
                   .start = *std::move(start),
                   .worker = worker,
                   .wait_for_lock = !no_wait});
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
