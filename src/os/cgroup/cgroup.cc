// Control groups through the files of cgroup2 (Documentation/admin-guide/cgroup-v2.rst). Enables
// only the memory controller, which by itself accounts memory and limits nothing, and only for the
// groups in a folder without processes of its own, since each of the agent's groups may hold
// processes. A group created below another program's group has no controllers enabled, and so may
// be below a group with processes.
#include "os/cgroup/cgroup.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "os/cgroup/cgroup_bpf.h"
#include "os/cgroup/cgroup_usage.h"
#include "os/core/file.h"
#include "os/process/process.h"

namespace penstock::os {
namespace {

constexpr const char* kNote = "trusted.penstock";
constexpr std::size_t kMaxNoteBytes = 60u << 10;

// Hidden name for the probe group, so that an interrupted probe is not listed as a group; names of
// real groups never begin with a dot.
constexpr char kHidden = '.';

base::Status MakeGroup(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0) return {};
  switch (errno) {
    case EACCES:
    case EPERM:
      return Error(Code::kPermissionDenied,
                   "no permission to create the control group " + path + ": root is required");
    case EROFS:
      return Error(Code::kPermissionDenied, "no permission to create the control group " + path +
                                                ": it is mounted read-only");
    case EAGAIN:
      return Error(Code::kFailedPrecondition,
                   "cannot create the control group " + path +
                       ": cgroup.max.descendants or cgroup.max.depth of a parent group is reached");
    default: return ErrnoError(errno, "create the control group " + path);
  }
}

base::Status CheckName(const std::string& name) {
  const bool plain = !name.empty() && name.size() <= 255 && name != "." && name != ".." &&
                     name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
  if (plain) return {};
  return Error(Code::kInvalidArgument, "invalid name for a control group: \"" + name + "\"");
}

base::Status Equip(const std::string& path, int program, const std::string& note) {
  const UniqueFd group(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!group) return ErrnoError(errno, "open " + path);
  TRY(AttachDeviceProgram(group.get(), program));
  if (::fsetxattr(group.get(), kNote, note.data(), note.size(), 0) == 0) return {};
  if (errno == EPERM)
    return Error(Code::kPermissionDenied,
                 "no permission to set the extended attribute of a control group: CAP_SYS_ADMIN is "
                 "required");
  return ErrnoError(errno, "set the extended attribute of " + path);
}

bool IsFolder(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::vector<std::string> Below(const std::string& path) {
  std::vector<std::string> names = ListDirectory(path).value_or({});
  std::erase_if(names, [&](const std::string& name) { return !IsFolder(path + "/" + name); });
  return names;
}

void AddMembers(const std::string& path, std::vector<pid_t>& pids) {
  const std::string text = ReadFile(path + "/cgroup.procs").value_or("");
  for (const std::string& line : base::Split(text, '\n')) {
    // A process of another pid namespace appears as pid 0, which kill(2) would take for this
    // process's own group.
    const auto pid = base::ParseInt(line);
    if (pid && *pid > 0 && *pid <= 0x7fffffff) pids.push_back(static_cast<pid_t>(*pid));
  }
  for (const std::string& name : Below(path)) AddMembers(path + "/" + name, pids);
}

base::Status RemoveFolders(const std::string& path) {
  for (const std::string& name : Below(path)) TRY(RemoveFolders(path + "/" + name));
  if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return {};
  return ErrnoError(errno, "remove the control group " + path);
}

/// Creates the folder of the agent's groups and marks it as groups are marked, so that PlaceFor
/// also recognizes the groups of another agent.
base::Status MakeTree(const std::string& path) {
  if (auto made = MakeGroup(path); !made.ok() && made.error().code() != Code::kAlreadyExists)
    return made;
  (void)::setxattr(path.c_str(), kNote, "", 0,
                   0);  // the probe in Open checks the permission for this
  return {};
}

bool HasNote(const std::string& path) { return ::lgetxattr(path.c_str(), kNote, nullptr, 0) >= 0; }

/// Whether a folder is the agent's own. In groups that are delegated to a user, folders with the
/// agent's names may be that user's.
bool IsOurs(const std::string& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == ::geteuid();
}

/// Adds the folders below `path` whose names begin with `prefix`, keyed by the rest of the name.
/// Each group has some forty files, so groups without subfolders, which their link count shows and
/// which are the majority, are not listed.
void FindFolders(const std::string& path, const std::string& prefix,
                 std::map<std::string, std::string>& found) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || status.st_nlink == 2) return;
  DIR* folder = ::opendir(path.c_str());
  if (folder == nullptr) return;
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(folder)) {
    const std::string_view name = entry->d_name;
    if (entry->d_type == DT_DIR && name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(folder);
  for (const std::string& name : names) {
    const std::string at = path + "/" + name;
    if (name.starts_with(prefix) && IsOurs(at))
      found.emplace(name.substr(prefix.size()), at);
    else
      FindFolders(at, prefix, found);
  }
}

/// Slurm on cgroup v2 creates "[<node>_]slurmstepd.scope/job_N/step_S/user/task_T".
bool IsOfSlurm(const std::string& cgroup) {
  const auto parts = base::Split(cgroup, '/');
  return std::ranges::any_of(parts, [](const std::string& part) {
    return part == "slurmstepd.scope" || part.ends_with("_slurmstepd.scope");
  });
}

/// The nearest programs above decide: programs above those apply only as far as the nearest ones
/// permit.
base::Status CheckPrograms(std::string folder, const std::string& mount) {
  while (true) {
    const UniqueFd group(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!group) return ErrnoError(errno, "open " + folder);
    ASSIGN(const DevicePrograms programs, FindDevicePrograms(group.get()));
    if (programs == DevicePrograms::kAlone)
      return Error(
          Code::kFailedPrecondition,
          "the device program of the control group " + folder +
              ", which applies to this process, does not allow another one: the batch system or "
              "container engine that restricted this process must give it its devices");
    if (programs == DevicePrograms::kBeside || folder == mount) return {};
    folder.resize(folder.rfind('/'));
  }
}

/// Accepts only the type of a group that holds whole processes and ordinary subgroups; the root has
/// no such file.
base::Status CheckType(const std::string& folder) {
  const auto type = ReadFile(folder + "/cgroup.type");
  if (!type.ok() && type.error().code() != Code::kNotFound) return type.error();
  if (!type.ok() || base::Trim(*type) == "domain") return {};
  return Error(Code::kFailedPrecondition,
               "the control group " + folder + " of this process is \"" +
                   std::string(base::Trim(*type)) +
                   "\": no control group for whole processes can be created below it");
}

bool SaysPopulated(std::string_view events) {
  const auto lines = base::Split(events, '\n');
  return std::ranges::find(lines, "populated 1") != lines.end();
}

}  // namespace

base::Result<std::string> ReadUnifiedCgroup(const std::string& proc, pid_t pid) {
  ASSIGN(const std::string text, ReadFile(proc + "/" + std::to_string(pid) + "/cgroup"));
  for (const std::string& line : base::Split(text, '\n'))
    if (line.starts_with("0::/")) return line.substr(3);
  return Error(Code::kNotFound,
               "process " + std::to_string(pid) + " is not in a unified control group hierarchy");
}

CgroupTree::CgroupTree(std::string mount, std::string mount_root, const std::string& group_name)
    : mount_(std::move(mount)),
      mount_root_(std::move(mount_root)),
      path_(mount_ + "/" + group_name),
      prefix_(group_name + ".") {}

base::Result<CgroupTree> CgroupTree::Open(const std::string& group_name) {
  TRY(CheckName(group_name));
  ASSIGN(const std::string mountinfo, ReadFile("/proc/self/mountinfo"));
  const CgroupMounts mounts = ParseCgroupMounts(mountinfo);
  if (mounts.own.empty())
    return Error(Code::kUnimplemented,
                 "no unified control group hierarchy (cgroup2) is mounted on this machine");
  CgroupTree tree(mounts.own, mounts.own_root == "/" ? "" : mounts.own_root, group_name);
  TRY(MakeTree(tree.path_));
  // Enables accounting of memory for the agent's groups if the machine accounts memory for its own
  // groups; otherwise the controller is not available here and the write fails.
  (void)WriteControlFile(tree.path_ + "/cgroup.subtree_control", "+memory");
  const std::string probe = kHidden + std::string("probe-") + std::to_string(::getpid());
  TRY(tree.Remove(probe));  // left by an earlier process with the same pid
  TRY(tree.Create(probe, tree.Place(probe), {.guarded = {{1, 3, 3}}, .admitted = {}}, "probe"));
  TRY(tree.Remove(probe));
  return tree;
}

std::vector<std::string> CgroupTree::ListOwn() const {
  std::vector<std::string> names = Below(path_);
  std::erase_if(names, [](const std::string& name) { return name.front() == kHidden; });
  return names;
}

std::vector<std::string> CgroupTree::List() {
  elsewhere_.clear();
  FindFolders(mount_, prefix_, elsewhere_);
  std::vector<std::string> names = ListOwn();
  for (const std::string& name : names) elsewhere_.erase(name);
  for (const auto& [name, folder] : elsewhere_) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

base::Result<std::string> CgroupTree::FolderAt(const std::string& cgroup) const {
  if (cgroup == "/" && mount_root_.empty()) return mount_;
  if (cgroup == mount_root_) return mount_;
  // "/../x" is a group outside this process's cgroup namespace; the mount may show it nevertheless.
  if (cgroup.starts_with(mount_root_ + "/") &&
      !(cgroup + "/").substr(mount_root_.size()).starts_with("/../"))
    return mount_ + cgroup.substr(mount_root_.size());
  return Error(Code::kFailedPrecondition,
               "the control group of this process (" + cgroup +
                   ") is not visible to the agent: one of the two runs in a container");
}

std::string CgroupTree::FolderOf(const std::string& name) const {
  const auto found = elsewhere_.find(name);
  return found != elsewhere_.end() ? found->second : path_ + "/" + name;
}

std::string CgroupTree::Place(const std::string& name) const {
  return mount_root_ + FolderOf(name).substr(mount_.size());
}

base::Result<std::string> CgroupTree::PlaceFor(const std::string& name,
                                               const std::string& above) const {
  ASSIGN(std::string folder, FolderAt(above));
  if (IsOfSlurm(above))
    return Error(
        Code::kFailedPrecondition,
        "this process belongs to a Slurm job (" + above +
            "), and Slurm does not track control groups below its own, so it could not end the "
            "program: request the device from Slurm, or start the program outside the job");
  // Stay out of the agent's own groups: their device program would deny the new lease's devices.
  for (auto end = mount_.size(); end < folder.size();) {
    end = std::min(folder.find('/', end + 1), folder.size());
    if (HasNote(folder.substr(0, end))) folder.resize(folder.rfind('/', end - 1));
  }
  TRY(CheckPrograms(folder, mount_));
  if (folder == mount_) return mount_root_ + path_.substr(mount_.size()) + "/" + name;
  TRY(CheckType(folder));
  return mount_root_ + folder.substr(mount_.size()) + "/" + prefix_ + name;
}

base::Status CgroupTree::Create(const std::string& name, const std::string& place,
                                const DeviceRules& rules, const std::string& note) {
  TRY(CheckName(name));
  if (note.size() > kMaxNoteBytes)
    return Error(Code::kInvalidArgument,
                 "an extended attribute of " + std::to_string(note.size()) + " bytes is too long");
  ASSIGN(const auto instructions, BuildDeviceProgram(rules));
  ASSIGN(const UniqueFd program, LoadDeviceProgram(instructions));
  ASSIGN(const std::string path, FolderAt(place));
  const bool own = path == path_ + "/" + name;
  auto made = MakeGroup(path);
  if (!made.ok() && own && !IsFolder(path_)) {  // another program removed the empty parent folder
    TRY(MakeTree(path_));
    made = MakeGroup(path);
  }
  TRY(made);
  auto equipped = Equip(path, program.get(), note);
  if (!equipped.ok())
    ::rmdir(path.c_str());
  else if (!own)
    elsewhere_[name] = path;
  return equipped;
}

base::Result<std::string> CgroupTree::Note(const std::string& name) const {
  TRY(CheckName(name));
  const std::string path = FolderOf(name);
  std::string note(kMaxNoteBytes, '\0');
  const ssize_t length = ::lgetxattr(path.c_str(), kNote, note.data(), note.size());
  if (length < 0 && errno == ENODATA)
    return Error(Code::kNotFound, path + " has no extended attribute");
  if (length < 0) return ErrnoError(errno, "read the extended attribute of " + path);
  note.resize(static_cast<std::size_t>(length));
  return note;
}

base::Status CgroupTree::Enter(const std::string& name, pid_t pid) const {
  TRY(CheckName(name));
  if (pid <= 0) return Error(Code::kInvalidArgument, "invalid process ID: " + std::to_string(pid));
  return WriteControlFile(FolderOf(name) + "/cgroup.procs", std::to_string(pid));
}

base::Status CgroupTree::MoveTo(const std::string& cgroup, pid_t pid) const {
  if (pid <= 0) return Error(Code::kInvalidArgument, "invalid process ID: " + std::to_string(pid));
  ASSIGN(const std::string folder, FolderAt(cgroup));
  return WriteControlFile(folder + "/cgroup.procs", std::to_string(pid));
}

std::vector<pid_t> CgroupTree::Members(const std::string& name) const {
  std::vector<pid_t> pids;
  if (CheckName(name).ok()) AddMembers(FolderOf(name), pids);
  std::ranges::sort(pids);
  return pids;
}

bool CgroupTree::Populated(const std::string& name) const {
  if (!CheckName(name).ok()) return false;
  const auto events = ReadFile(FolderOf(name) + "/cgroup.events");
  if (!events.ok()) return events.error().code() != Code::kNotFound;
  return SaysPopulated(*events);
}

base::Result<UniqueFd> CgroupTree::OpenEvents(const std::string& name) const {
  TRY(CheckName(name));
  const std::string path = FolderOf(name) + "/cgroup.events";
  UniqueFd events(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!events) return ErrnoError(errno, "open " + path);
  ReadEvents(events.get());  // otherwise the first poll would report a change
  return events;
}

bool CgroupTree::ReadEvents(int events) {
  std::array<char, 256> buffer{};
  const ssize_t got = ::pread(events, buffer.data(), buffer.size(), 0);
  if (got < 0) return errno != ENODEV;
  return SaysPopulated(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
}

void CgroupTree::Signal(const std::string& name, std::span<const pid_t> pids, int signal) const {
  if (!CheckName(name).ok()) return;
  const std::string place = Place(name);
  for (const pid_t pid : pids) {
    const auto process = OpenPidfd(pid);
    const auto at = ReadUnifiedCgroup("/proc", pid);  // of the pidfd's process, or of none
    if (!process.ok() || !at.ok() || !(*at + "/").starts_with(place + "/")) continue;
    (void)::syscall(SYS_pidfd_send_signal, process->get(), signal, nullptr, 0);
  }
}

base::Status CgroupTree::Kill(const std::string& name) const {
  TRY(CheckName(name));
  const std::string path = FolderOf(name);
  if (!IsFolder(path)) return ErrnoError(ENOENT, "kill the processes in " + path);
  if (auto killed = WriteControlFile(path + "/cgroup.kill", "1");
      killed.ok() || killed.error().code() != Code::kNotFound)
    return killed;
  // Frozen processes cannot fork away, and SIGKILL reaches them anyway. Without a freezer (before
  // 5.2), repeated passes must suffice.
  const bool frozen = WriteControlFile(path + "/cgroup.freeze", "1").ok();
  for (int pass = 0; pass < 3; ++pass) {
    for (const pid_t pid : Members(name)) ::kill(pid, SIGKILL);
  }
  if (frozen) TRY(WriteControlFile(path + "/cgroup.freeze", "0"));
  return {};
}

base::Status CgroupTree::Remove(const std::string& name) {
  TRY(CheckName(name));
  TRY(RemoveFolders(FolderOf(name)));
  elsewhere_.erase(name);
  return {};
}

base::Status CgroupTree::RemoveTree() const {
  if (!ListOwn().empty())
    return Error(Code::kFailedPrecondition, "control groups remain in " + path_);
  return RemoveFolders(path_);
}

}  // namespace penstock::os
