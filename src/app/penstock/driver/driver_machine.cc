#include "app/penstock/driver/driver_machine.h"

#include <algorithm>
#include <deque>
#include <map>

#include "api/commands.h"
#include "base/core/printable.h"
#include "base/core/strings.h"
#include "os/core/file.h"
#include "os/core/root.h"
#include "os/lock_file.h"
#include "os/marker_files.h"
#include "os/mounts.h"
#include "os/process/device_users.h"
#include "os/process/process.h"

namespace penstock::app {
namespace {

constexpr std::size_t kMostDigest = 4096, kMostModules = 1000;
constexpr std::size_t kLongestProgram = 40, kMostNamed = 8;
/// The kubelet makes a folder in it for each pod: NAMESPACE_NAME_UID.
constexpr char kPodLogs[] = "/var/log/pods";

std::string Below(const std::string& root, const std::string& path) {
  return (root == "/" ? "" : root) + path;
}

/// The names of the node's pods, by what the names of their control groups contain.
std::map<std::string, std::string> PodsByGroup(const DriverMachine& machine) {
  std::map<std::string, std::string> pods;
  const auto folders = os::ListDirectory(Below(machine.host_root, kPodLogs));
  if (!folders.ok()) return pods;
  for (const std::string& folder : *folders) {
    const auto parts = base::Split(folder, '_');
    if (parts.size() != 3) continue;
    std::string uid = parts[2];
    pods["pod" + uid] = parts[0] + "/" + parts[1];
    std::ranges::replace(uid, '-', '_');  // with systemd's names of groups
    pods["pod" + uid] = parts[0] + "/" + parts[1];
  }
  return pods;
}

std::string PodOf(const os::ProcessInfo& process, const std::map<std::string, std::string>& pods) {
  for (const std::string& group : process.cgroups)
    for (const auto& [key, pod] : pods)
      if (group.find(key) != std::string::npos) return base::Printable(pod);
  return "";
}

/// Any process may call itself anything.
std::string ProgramIn(const std::string& command) {
  std::string program = base::LeafOf(api::ProgramOf(command)).substr(0, kLongestProgram);
  std::ranges::replace(program, '"', '?');
  return base::Printable(program);
}

/// A file that a container locks as long as it runs, and that it leaves when it is killed.
bool IsLeft(const std::string& file) { return os::Exists(file) && !os::LockFile::IsHeld(file); }

}  // namespace

std::string ContainerRootOf(const DriverMachine& machine, const device::KernelDriver& driver) {
  return machine.run_root + "/" + driver.container_root;
}

node::driver::Modules ReadDriverModules(const DriverMachine& machine,
                                        const device::KernelDriver& driver) {
  node::driver::Modules modules;
  std::deque<std::string> names{driver.module};
  names.insert(names.end(), driver.modules.begin(), driver.modules.end());
  names.insert(names.end(), driver.rivals.begin(), driver.rivals.end());
  for (; !names.empty() && modules.size() < kMostModules; names.pop_front()) {
    if (modules.contains(names.front())) continue;
    auto module = os::FindKernelModule(machine.sysfs_root, names.front());
    if (!module) continue;
    names.insert(names.end(), module->users.begin(), module->users.end());
    modules.emplace(names.front(), *std::move(module));
  }
  return modules;
}

node::driver::DriverState ReadDriverState(const DriverMachine& machine,
                                          const device::KernelDriver& driver) {
  node::driver::DriverState state;
  state.modules = ReadDriverModules(machine, driver);
  state.digest = base::Trim(
      os::ReadFile(machine.run_root + "/" + driver.digest_file, kMostDigest).value_or(""));
  state.root_mounted = os::IsMountPoint(ContainerRootOf(machine, driver));
  state.container_ended = IsLeft(machine.run_root + "/" + driver.pid_file);
  const auto root = os::Root::Open(machine.host_root);
  if (!root.ok()) return state;
  for (const std::string& library : driver.libraries)
    if (state.host_library.empty() && root->Exists(library)) state.host_library = library;
  return state;
}

std::vector<DriverUser> FindDriverUsers(const DriverMachine& machine,
                                        const device::KernelDriver& driver) {
  std::vector<DriverUser> users;
  const auto pods = PodsByGroup(machine);
  for (const os::DeviceUser& found : os::FindDeviceUsers(machine.proc_root, driver.device_files)) {
    const auto process = os::ReadProcess(machine.proc_root, found.pid);
    if (!process.ok()) continue;
    users.push_back({found.pid, ProgramIn(process->command), os::UserName(process->uid),
                     PodOf(*process, pods), base::Printable(found.file)});
  }
  return users;
}

std::string InWords(const std::vector<DriverUser>& users) {
  std::vector<std::string> words;
  for (const DriverUser& user : users) {
    if (words.size() == kMostNamed) {
      words.push_back(std::to_string(users.size() - kMostNamed) + " more");
      break;
    }
    words.push_back("process " + std::to_string(user.pid) + " \"" + user.program + "\" of user " +
                    user.user + (user.pod.empty() ? "" : " in pod " + user.pod) + " (" +
                    user.file.substr(0, 2 * kLongestProgram) + ")");
  }
  return base::Join(words, ", ");
}

base::Status RemoveDriverFiles(const DriverMachine& machine,
                               const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    const std::string path = machine.run_root + "/" + file;
    const std::size_t slash = path.rfind('/');
    if (!os::Exists(path.substr(0, slash))) continue;
    TRY(os::UpdateMarkers(path.substr(0, slash), {}, {path.substr(slash + 1)}));
  }
  return {};
}

}  // namespace penstock::app
