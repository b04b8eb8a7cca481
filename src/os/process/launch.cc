// Must run before the process starts other threads, since unshare(2) requires a single thread.
#include "os/process/launch.h"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"

namespace penstock::os {
namespace {

constexpr std::string_view kRemark = "launch: ";

int Fail(const base::Error& error) {
  std::fprintf(stderr, "%s\n", error.message().c_str());
  return 126;
}

void Remark(const char* what, const base::Error& error) {
  std::printf("launch: %s: %s\n", what, error.message().c_str());
}

struct Hierarchy {
  std::string path;
  bool unified = false;
};

/// The cgroup file systems that a process has mounted, as paths through that process's root.
std::vector<Hierarchy> HierarchiesOf(const std::string& process, const std::string& root) {
  std::vector<Hierarchy> found;
  for (const std::string& line :
       base::Split(ReadFile("/proc/" + process + "/mounts").value_or(""), '\n')) {
    const auto words = base::Split(line, ' ');
    if (words.size() > 2 && (words[2] == "cgroup" || words[2] == "cgroup2"))
      if (const std::string path = root + words[1]; Exists(path))
        found.push_back({path, words[2] == "cgroup2"});
  }
  return found;
}

/// The hierarchies as the machine's first process mounts them: a container may have mounted only
/// its own group, with v1 even if it is privileged. If that process is inaccessible, this process's
/// own mounts.
std::vector<Hierarchy> Hierarchies() {
  const auto machine = HierarchiesOf("1", "/proc/1/root");
  return machine.empty() ? HierarchiesOf("self", "") : machine;
}

/// Leaves the group that ends with the caller, in every hierarchy that can end or limit a process.
base::Status LeaveGroup(const std::string& name) {
  const auto hierarchies = Hierarchies();
  if (hierarchies.empty())
    return base::Error(base::Code::kNotFound, "no control group hierarchy is mounted");
  base::Status all;
  for (const Hierarchy& hierarchy : hierarchies) {
    const std::string group = hierarchy.unified ? hierarchy.path + "/" + name : hierarchy.path;
    if (hierarchy.unified && ::mkdir(group.c_str(), 0755) != 0 && errno != EEXIST) {
      all = ErrnoError(errno, "create the control group " + group);
      continue;
    }
    if (const auto moved = WriteControlFile(group + "/cgroup.procs", "0"); !moved.ok()) all = moved;
  }
  return all;
}

base::Status Mount(const LaunchOptions& options) {
  if (::unshare(CLONE_NEWNS) != 0) return ErrnoError(errno, "create a mount namespace");
  // Mounts that the machine makes later remain visible here; mounts made here are not visible
  // elsewhere.
  if (::mount(nullptr, "/", nullptr, MS_SLAVE | MS_REC, nullptr) != 0)
    return ErrnoError(errno, "keep mounts private");
  if (!options.scratch.empty() && ::mount("tmpfs", options.scratch.c_str(), "tmpfs",
                                          MS_NOSUID | MS_NODEV, "size=1m,mode=755") != 0)
    return ErrnoError(errno, "cover " + options.scratch);
  for (const auto& [from, to] : options.binds) {
    TRY(MakeDirectories(to));
    if (::mount(from.c_str(), to.c_str(), nullptr, MS_BIND, nullptr) != 0)
      return ErrnoError(errno, "mount " + from + " at " + to);
  }
  return {};
}

base::Result<LaunchOptions> Parse(int argc, char** argv) {
  LaunchOptions options;
  const option known[] = {
      {"within", required_argument, nullptr, 'w'}, {"cgroup", required_argument, nullptr, 'g'},
      {"bind", required_argument, nullptr, 'b'},   {"scratch", required_argument, nullptr, 's'},
      {"root", required_argument, nullptr, 'r'},   {nullptr, 0, nullptr, 0}};
  ::optind = 1;
  for (int found = 0; (found = ::getopt_long(argc, argv, "+", known, nullptr)) != -1;) {
    const std::string value = ::optarg != nullptr ? ::optarg : "";
    const std::size_t equals = value.find('=');
    switch (found) {
      case 'w': options.within = value; break;
      case 'g': options.cgroup = value; break;
      case 's': options.scratch = value; break;
      case 'r': options.root = value; break;
      case 'b':
        if (equals == std::string::npos)
          return base::Error(base::Code::kInvalidArgument, "--bind requires FROM=TO");
        options.binds.emplace_back(value.substr(0, equals), value.substr(equals + 1));
        break;
      default: return base::Error(base::Code::kInvalidArgument, "launch: invalid usage");
    }
  }
  options.command.assign(argv + ::optind, argv + argc);
  if (options.command.empty())
    return base::Error(base::Code::kInvalidArgument, "launch: no command given");
  return options;
}

/// setns(2) also changes the root and the working directory to those of the namespace.
base::Status Enter(const std::string& process) {
  const UniqueFd mounts(::open((process + "/ns/mnt").c_str(), O_RDONLY | O_CLOEXEC));
  if (!mounts || ::setns(mounts.get(), CLONE_NEWNS) != 0)
    return ErrnoError(errno, "enter the mount namespace of " + process);
  return {};
}

int Become(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  ::execvp(arguments[0], arguments.data());
  const int error = errno;
  return error == ENOENT ? (Fail(ErrnoError(error, "start " + command[0])), 127)
                         : Fail(ErrnoError(error, "start " + command[0]));
}

}  // namespace

std::vector<std::string> LaunchArguments(const std::string& launcher,
                                         const LaunchOptions& options) {
  std::vector<std::string> arguments = {launcher, kLaunchVerb};
  if (!options.within.empty()) arguments.insert(arguments.end(), {"--within", options.within});
  if (!options.cgroup.empty()) arguments.insert(arguments.end(), {"--cgroup", options.cgroup});
  if (!options.scratch.empty()) arguments.insert(arguments.end(), {"--scratch", options.scratch});
  for (const auto& [from, to] : options.binds)
    arguments.insert(arguments.end(), {"--bind", from + "=" + to});
  if (!options.root.empty()) arguments.insert(arguments.end(), {"--root", options.root});
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), options.command.begin(), options.command.end());
  return arguments;
}

int LaunchMain(int argc, char** argv) {
  const auto options = Parse(argc - 1, argv + 1);
  if (!options.ok()) return Fail(options.error());
  if (!options->within.empty())
    if (const auto entered = Enter(options->within); !entered.ok()) return Fail(entered.error());
  if (!options->cgroup.empty())
    if (const auto left = LeaveGroup(options->cgroup); !left.ok()) Remark("group", left.error());
  if (!options->binds.empty() || !options->scratch.empty()) {
    const auto mounted = Mount(*options);
    if (!mounted.ok() && !options->root.empty()) return Fail(mounted.error());
    if (!mounted.ok()) Remark("mounts", mounted.error());
  }
  if (!options->root.empty() && (::chroot(options->root.c_str()) != 0 || ::chdir("/") != 0))
    return Fail(ErrnoError(errno, "enter " + options->root));
  std::fflush(stdout);
  return Become(options->command);
}

LaunchRemarks ReadLaunchRemarks(const std::string& output) {
  LaunchRemarks remarks;
  for (const std::string& line : base::Split(output, '\n')) {
    const std::string_view text(line);
    if (!text.starts_with(kRemark)) continue;
    const std::string_view rest = text.substr(kRemark.size());
    if (rest.starts_with("group: ")) remarks.group = rest.substr(7);
    if (rest.starts_with("mounts: ")) remarks.mounts = rest.substr(8);
  }
  return remarks;
}

}  // namespace penstock::os
