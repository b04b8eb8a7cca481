#include "app/agent_command.h"

#include <utility>

namespace penstock::app {

namespace {

using command::Flag;
using command::Value;

constexpr char kExamples[] =
    R"(penstock-agent                                     # this machine's own accelerators
penstock-agent --config /etc/penstock/node.yaml
penstock-agent --driver-root /run/nvidia/driver --listen off)";

}  // namespace

command::Verb AgentCommand(AgentCommandLine& line) {
  command::Verb agent{
      .name = "penstock-agent",
      .summary =
          "The agent of one node: discovers its accelerators, offers them to the kubelet and to "
          "local programs, and tracks their holders",
      .examples = kExamples,
      .details = "Start it with `penstock up`, or directly from a systemd unit or a DaemonSet.",
      .exit_status = "0 stopped on request, 1 cannot start (see the log), 2 usage error",
      .options = {Flag("--no-wait", &line.no_wait,
                       "fail at once if another agent is running, instead of waiting for its lock"),
                  Flag("--verbose", &line.verbose, "log debug messages"),
                  Value("--worker", &line.worker, "PATH",
                        "the worker program [penstock-worker beside this program]")}};
  for (auto* options : {&NodeOptions, &PluginOptions, &ExporterOptions})
    for (command::Option& option : options(line.settings))
      agent.options.push_back(std::move(option));
  return agent;
}

}  // namespace penstock::app
