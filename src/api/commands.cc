// Command lines come here as text, their arguments joined by blanks.
#include "api/commands.h"

namespace penstock::api {

namespace {

template <typename Item>
void Hide(const Viewer& viewer, Item& item) {
  if (!viewer.sees_all && (item.user.empty() || item.user != viewer.user)) item.command = ProgramOf(item.command);
}

}  // namespace

std::string ProgramOf(std::string_view command) { return std::string(command.substr(0, command.find(' '))); }

void HideCommands(const Viewer& viewer, Report& report) {
  for (DeviceReport& device : report.devices)
    for (HolderReport& holder : device.holders) Hide(viewer, holder);
}

void HideCommands(const Viewer& viewer, Samples& samples) {
  for (SampledProcess& process : samples.processes) Hide(viewer, process);
}

void HideCommands(const Viewer& viewer, std::vector<IdleHolder>& idle) {
  for (IdleHolder& holder : idle) Hide(viewer, holder);
}

void HideProcesses(Report& report) {
  report.agent_pid = 0;
  for (DeviceReport& device : report.devices) {
    for (HolderReport& holder : device.holders) {
      holder.command.clear();
      holder.pids.clear();
    }
  }
}

}  // namespace penstock::api
