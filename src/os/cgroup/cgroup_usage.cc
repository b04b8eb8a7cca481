// Reads the documented files of both cgroup versions. A value that cannot be read is left out.
#include "os/cgroup/cgroup_usage.h"

#include <algorithm>
#include <cstdint>

#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"
#include "os/mounts.h"

namespace penstock::os {
namespace {

constexpr std::size_t kMaxBytes = 64u << 10;
constexpr int kDeepest = 8;  // levels of subgroups that are searched

bool Has(std::string_view list, std::string_view name) {
  const auto names = base::Split(list, ',');
  return std::ranges::find(names, name) != names.end();
}

/// How many levels above the root of this process's cgroup namespace a path begins: "/../.." is
/// two. A group may be named "..x".
int LevelsUp(std::string_view path) {
  int levels = 0;
  for (; path == "/.." || path.starts_with("/../"); path.remove_prefix(3)) ++levels;
  return levels;
}

/// How much of a hierarchy a mount shows, by its root: positive for levels above the namespace's
/// root, negative for levels below it, as in a container's own v1 mounts without a namespace of its
/// own.
int LevelsShown(std::string_view root) {
  const int up = LevelsUp(root);
  return up > 0 || root == "/" ? up : -static_cast<int>(std::ranges::count(root, '/'));
}

/// Keeps the mount point that shows most of a hierarchy.
struct Found {
  std::string at;
  int levels = 0;
  void Offer(std::string_view root, std::string_view point) {
    if (!at.empty() && LevelsShown(root) <= levels) return;
    levels = LevelsShown(root);
    at = PlainMountPoint(point);
  }
};

std::optional<std::uint64_t> ReadNumber(const std::string& path) {
  const auto text = ReadFile(path, kMaxBytes);
  return text.ok() ? base::ParseUint(base::Trim(*text)) : std::nullopt;
}

std::optional<base::Bytes> ReadBytes(const std::string& path) {
  const auto number = ReadNumber(path);
  return number ? std::optional(base::Bytes{*number}) : std::nullopt;
}

/// The number after a key of a flat keyed file: "usage_usec 11586".
std::optional<std::uint64_t> ReadKeyed(const std::string& path, std::string_view key) {
  const auto text = ReadFile(path, kMaxBytes);
  if (!text.ok()) return std::nullopt;
  for (const std::string& line : base::Split(*text, '\n'))
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ' ')
      return base::ParseUint(std::string_view(line).substr(key.size() + 1));
  return std::nullopt;
}

std::optional<base::Duration> ReadCpu(const CgroupPlace& place) {
  if (!place.cpu.empty())
    if (const auto nanoseconds = ReadNumber(place.cpu + "/cpuacct.usage"))
      return base::Duration(*nanoseconds);
  if (place.unified.empty()) return std::nullopt;
  const auto microseconds = ReadKeyed(place.unified + "/cpu.stat", "usage_usec");
  return microseconds ? std::optional<base::Duration>(std::chrono::microseconds(*microseconds))
                      : std::nullopt;
}

/// Resident memory that is backed by neither a file nor shared memory (proc(5), statm: resident
/// minus shared).
std::uint64_t ReadAnonymous(const std::string& proc, const std::string& pid) {
  const auto text = ReadFile(proc + "/" + pid + "/statm", kMaxBytes);
  if (!text.ok()) return 0;
  const auto fields = base::Split(*text, ' ');
  if (fields.size() < 3) return 0;
  const std::uint64_t resident = base::ParseUint(fields[1]).value_or(0),
                      shared = base::ParseUint(fields[2]).value_or(0);
  return resident > shared
             ? (resident - shared) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))
             : 0;
}

std::uint64_t SumAnonymous(const std::string& proc, const std::string& folder, int depth) {
  std::uint64_t sum = 0;
  for (const std::string& pid : base::Split(ReadFile(folder + "/cgroup.procs").value_or(""), '\n'))
    if (!pid.empty() && pid != "0") sum += ReadAnonymous(proc, pid);
  if (depth == 0 || ReadKeyed(folder + "/cgroup.stat", "nr_descendants") == 0)
    return sum;  // most groups have no descendants
  for (const std::string& name : ListDirectory(folder).value_or({}))
    if (Exists(folder + "/" + name + "/cgroup.procs"))
      sum += SumAnonymous(proc, folder + "/" + name, depth - 1);
  return sum;
}

bool IsOfKubernetes(const std::string& name) {
  return name.starts_with("kubepods") || name.starts_with("kubelet");
}

/// The folder at a path of which only the end is known, since its beginning is outside this
/// process's cgroup namespace.
std::string FindBelow(const std::string& folder, const std::string& end, int depth) {
  if (Exists(folder + end)) return folder + end;
  if (depth == 0) return "";
  for (const std::string& name : ListDirectory(folder).value_or({})) {
    if (!IsOfKubernetes(name) && name != "burstable" && name != "besteffort") continue;
    if (std::string found = FindBelow(folder + "/" + name, end, depth - 1); !found.empty())
      return found;
  }
  return "";
}

std::string FolderOf(const std::string& mount, const std::string& path) {
  if (mount.empty() || path.empty()) return "";
  const int levels = LevelsUp(path);
  if (levels == 0) return mount + (path == "/" ? "" : path);
  return FindBelow(mount, path.substr(static_cast<std::size_t>(levels) * 3), 3);
}

}  // namespace

CgroupMounts ParseCgroupMounts(std::string_view mountinfo) {
  Found unified, cpu, memory;
  std::string own, own_root;
  for (const std::string& line : base::Split(mountinfo, '\n')) {
    const auto dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const auto mount = base::Split(std::string_view(line).substr(0, dash), ' ');
    const auto type = base::Split(std::string_view(line).substr(dash + 3), ' ');
    if (mount.size() < 5 || type.size() < 3) continue;
    if (type[0] == "cgroup2") unified.Offer(mount[3], mount[4]);
    if (type[0] == "cgroup2" && own.empty()) own = PlainMountPoint(mount[4]);
    if (type[0] == "cgroup2" && own == PlainMountPoint(mount[4]))
      own_root = PlainMountPoint(mount[3]);  // a later mount covers an earlier one
    if (type[0] == "cgroup" && Has(type[2], "cpuacct")) cpu.Offer(mount[3], mount[4]);
    if (type[0] == "cgroup" && Has(type[2], "memory")) memory.Offer(mount[3], mount[4]);
  }
  return {unified.at, cpu.at, memory.at, own, own_root};
}

CgroupPlace FindCgroup(std::string_view text, const CgroupMounts& mounts,
                       const std::function<std::string(const std::string&)>& cut) {
  CgroupPlace place;
  for (const std::string& line : base::Split(text, '\n')) {
    const auto first = line.find(':'),
               second = line.find(':', first + 1);  // "4:memory:/path", "0::/path"
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string_view controllers =
        std::string_view(line).substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (line.starts_with("0::")) place.unified = FolderOf(mounts.unified, cut(path));
    if (Has(controllers, "cpuacct")) place.cpu = FolderOf(mounts.cpu, cut(path));
    if (Has(controllers, "memory")) place.memory = FolderOf(mounts.memory, cut(path));
  }
  return place;
}

CgroupUsage ReadCgroupUsage(const CgroupPlace& place, const std::string& proc) {
  CgroupUsage usage{.cpu = ReadCpu(place)};
  if (!place.memory.empty()) {
    usage.memory = ReadBytes(place.memory + "/memory.usage_in_bytes");
    usage.memory_peak = ReadBytes(place.memory + "/memory.max_usage_in_bytes");
  } else if (!place.unified.empty()) {
    usage.memory = ReadBytes(place.unified + "/memory.current");
    usage.memory_peak = ReadBytes(place.unified + "/memory.peak");  // Linux 5.19
    if (!usage.memory && Exists(place.unified))
      usage.memory = base::Bytes{SumAnonymous(proc, place.unified, kDeepest)};
  }
  return usage;
}

}  // namespace penstock::os
