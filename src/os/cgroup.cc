// Control groups by the files of cgroup2 (Documentation/admin-guide/cgroup-v2.rst). Enables no controller but that of memory,
// which counts and limits nothing by itself, and that only for the groups in a folder in which no process is: every group of ours may hold
// processes.
#include "os/cgroup.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <mntent.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "os/cgroup_bpf.h"
#include "os/core/file.h"

namespace penstock::os {
namespace {

using base::Code;
using base::ErrnoError;
using base::Error;

constexpr const char* kNote = "trusted.penstock";
constexpr std::size_t kMostNoteBytes = 60u << 10;

// An interrupted proof of our rights must not look like a group; no group of ours begins with a dot.
constexpr char kHidden = '.';

base::Result<std::string> FindMount() {
  std::FILE* mounts = ::setmntent("/proc/self/mounts", "re");
  if (mounts == nullptr) return ErrnoError(errno, "open /proc/self/mounts");
  std::string path;
  std::array<char, 8192> buffer{};
  mntent entry{};
  while (path.empty() && ::getmntent_r(mounts, &entry, buffer.data(), static_cast<int>(buffer.size())) != nullptr) {
    if (std::string_view(entry.mnt_type) == "cgroup2") path = entry.mnt_dir;
  }
  ::endmntent(mounts);
  if (path.empty()) return Error(Code::kUnimplemented, "no unified control group hierarchy (cgroup2) is mounted on this machine");
  return path;
}

base::Status MakeGroup(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0) return {};
  switch (errno) {
    case EACCES:
    case EPERM: return Error(Code::kPermissionDenied, "no right to create the control group " + path + ": root is needed");
    case EROFS: return Error(Code::kPermissionDenied, "no right to create the control group " + path + ": it is mounted read-only here");
    default: return ErrnoError(errno, "create the control group " + path);
  }
}

base::Status CheckName(const std::string& name) {
  const bool plain = !name.empty() && name.size() <= 255 && name != "." && name != ".." && name.find('/') == std::string::npos &&
                     name.find('\0') == std::string::npos;
  if (plain) return {};
  return Error(Code::kInvalidArgument, "no name for a control group: \"" + name + "\"");
}

base::Status Equip(const std::string& path, int program, const std::string& note) {
  const UniqueFd group(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!group) return ErrnoError(errno, "open " + path);
  TRY(AttachDeviceProgram(group.get(), program));
  if (::fsetxattr(group.get(), kNote, note.data(), note.size(), 0) == 0) return {};
  if (errno == EPERM) return Error(Code::kPermissionDenied, "no right to leave a note at a control group: CAP_SYS_ADMIN is needed");
  return ErrnoError(errno, "leave a note at " + path);
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
    // A process of another pid namespace is shown as 0, which kill(2) would take for ourselves.
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

bool SaysPopulated(std::string_view events) {
  const auto lines = base::Split(events, '\n');
  return std::find(lines.begin(), lines.end(), "populated 1") != lines.end();
}

}  // namespace

base::Result<CgroupTree> CgroupTree::Open(const std::string& group_name) {
  TRY(CheckName(group_name));
  ASSIGN(const std::string mount, FindMount());
  const CgroupTree tree(mount + "/" + group_name);
  if (auto made = MakeGroup(tree.path_); !made.ok() && made.error().code() != Code::kAlreadyExists) return made.error();
  // Where the machine counts the memory of its own groups, that of ours is counted too. Elsewhere there is no such controller to be had.
  (void)WriteControlFile(tree.path_ + "/cgroup.subtree_control", "+memory");
  const std::string probe = kHidden + std::string("probe-") + std::to_string(::getpid());
  TRY(tree.Remove(probe));  // of a process before us that had our pid
  TRY(tree.Create(probe, {.guarded = {{1, 3, 3}}, .admitted = {}}, "probe"));
  TRY(tree.Remove(probe));
  return tree;
}

std::vector<std::string> CgroupTree::List() const {
  std::vector<std::string> names = Below(path_);
  std::erase_if(names, [](const std::string& name) { return name.front() == kHidden; });
  return names;
}

base::Status CgroupTree::Create(const std::string& name, const DeviceRules& rules, const std::string& note) const {
  TRY(CheckName(name));
  if (note.size() > kMostNoteBytes) return Error(Code::kInvalidArgument, "a note of " + std::to_string(note.size()) + " bytes is too long");
  ASSIGN(const auto instructions, BuildDeviceProgram(rules));
  ASSIGN(const UniqueFd program, LoadDeviceProgram(instructions));
  const std::string path = path_ + "/" + name;
  auto made = MakeGroup(path);
  if (!made.ok() && !IsFolder(path_)) {  // somebody tidied the empty folder of all our groups away
    TRY(MakeGroup(path_));
    made = MakeGroup(path);
  }
  TRY(made);
  auto equipped = Equip(path, program.get(), note);
  if (!equipped.ok()) ::rmdir(path.c_str());
  return equipped;
}

base::Result<std::string> CgroupTree::Note(const std::string& name) const {
  TRY(CheckName(name));
  const std::string path = path_ + "/" + name;
  std::string note(kMostNoteBytes, '\0');
  const ssize_t length = ::lgetxattr(path.c_str(), kNote, note.data(), note.size());
  if (length < 0 && errno == ENODATA) return Error(Code::kNotFound, path + " has no note");
  if (length < 0) return ErrnoError(errno, "read the note of " + path);
  note.resize(static_cast<std::size_t>(length));
  return note;
}

base::Status CgroupTree::Enter(const std::string& name, pid_t pid) const {
  TRY(CheckName(name));
  if (pid <= 0) return Error(Code::kInvalidArgument, "no process: " + std::to_string(pid));
  return WriteControlFile(path_ + "/" + name + "/cgroup.procs", std::to_string(pid));
}

std::vector<pid_t> CgroupTree::Members(const std::string& name) const {
  std::vector<pid_t> pids;
  if (CheckName(name).ok()) AddMembers(path_ + "/" + name, pids);
  std::sort(pids.begin(), pids.end());
  return pids;
}

bool CgroupTree::Populated(const std::string& name) const {
  if (!CheckName(name).ok()) return false;
  const auto events = ReadFile(path_ + "/" + name + "/cgroup.events");
  if (!events.ok()) return events.error().code() != Code::kNotFound;
  return SaysPopulated(*events);
}

base::Result<UniqueFd> CgroupTree::OpenEvents(const std::string& name) const {
  TRY(CheckName(name));
  const std::string path = path_ + "/" + name + "/cgroup.events";
  UniqueFd events(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!events) return ErrnoError(errno, "open " + path);
  ReadEvents(events.get());  // it would be reported as changed before the first reading
  return events;
}

bool CgroupTree::ReadEvents(int events) {
  std::array<char, 256> buffer{};
  const ssize_t got = ::pread(events, buffer.data(), buffer.size(), 0);
  return got > 0 && SaysPopulated(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
}

base::Status CgroupTree::Kill(const std::string& name) const {
  TRY(CheckName(name));
  const std::string path = path_ + "/" + name;
  if (!IsFolder(path)) return ErrnoError(ENOENT, "kill what is in " + path);
  if (auto killed = WriteControlFile(path + "/cgroup.kill", "1"); killed.ok() || killed.error().code() != Code::kNotFound) return killed;
  // Frozen, nobody forks away from us; the kill reaches them all the same. Without a freezer (before 5.2) a second look must do.
  const bool frozen = WriteControlFile(path + "/cgroup.freeze", "1").ok();
  for (int look = 0; look < 3; ++look) {
    for (const pid_t pid : Members(name)) ::kill(pid, SIGKILL);
  }
  if (frozen) TRY(WriteControlFile(path + "/cgroup.freeze", "0"));
  return {};
}

base::Status CgroupTree::Remove(const std::string& name) const {
  TRY(CheckName(name));
  return RemoveFolders(path_ + "/" + name);
}

base::Status CgroupTree::RemoveTree() const {
  if (!List().empty()) return Error(Code::kFailedPrecondition, "there are groups in " + path_);
  return RemoveFolders(path_);
}

}  // namespace penstock::os
