// Command lines arrive as text, with their arguments joined by blanks.
#include "api/commands.h"

namespace penstock::api {

namespace {

template <typename Function>
void ForEachHolder(Report& report, Function function) {
  for (DeviceReport& device : report.devices) {
    for (HolderReport& holder : device.holders) function(holder);
    for (HolderReport& process : device.graphics) function(process);
  }
  for (HolderReport& holder : report.removed) function(holder);
}

template <typename Item>
void Hide(const Viewer& viewer, Item& item) {
  if (!viewer.sees_all && (item.user.empty() || item.user != viewer.user))
    item.command = ProgramOf(item.command);
}

}  // namespace

std::string ProgramOf(std::string_view command) {
  return std::string(command.substr(0, command.find(' ')));
}

void HideCommands(const Viewer& viewer, Report& report) {
  ForEachHolder(report, [&viewer](HolderReport& holder) { Hide(viewer, holder); });
}

void HideCommands(const Viewer& viewer, Samples& samples) {
  for (SampledProcess& process : samples.processes) Hide(viewer, process);
}

void HideCommands(const Viewer& viewer, std::vector<IdleHolder>& idle) {
  for (IdleHolder& holder : idle) Hide(viewer, holder);
}

void HideProcesses(Report& report) {
  report.agent_pid = 0;
  ForEachHolder(report, [](HolderReport& holder) {
    holder.command.clear();
    holder.pids.clear();
  });
}

}  // namespace penstock::api
