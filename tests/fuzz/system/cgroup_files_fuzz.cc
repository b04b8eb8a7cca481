// Fuzzes /proc/PID/mountinfo and /proc/PID/cgroup, because containers choose names of groups and
// mount points. The input is the first file, a NUL, and the second.
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "../oracle.h"
#include "os/cgroup/cgroup_usage.h"
#include "os/testing/temporary_folder.h"

namespace {

using penstock::fuzz::Require;
using penstock::os::CgroupMounts;

/// Hierarchies with some groups, and a folder beside them that belongs to none.
struct Hierarchies {
  Hierarchies() {
    for (const char* group : {"unified/kubepods.slice/x.scope", "unified/a/b", "unifiedx",
                              "cpu/kubepods/burstable/pod1", "memory/a", "memoryx"})
      std::filesystem::create_directories(folder / group);
  }
  const penstock::os::TemporaryFolder folder;
  const CgroupMounts mounts{folder / "unified", folder / "cpu", folder / "memory",
                            folder / "unified"};
};

/// Writes one line of mountinfo for each mount, escaped like the kernel's (fs/proc_namespace.c:
/// blank, tab, newline, backslash and '#').
std::string MountinfoOf(const CgroupMounts& mounts) {
  const auto line = [](const std::string& point, const std::string& type,
                       const std::string& options) {
    std::string escaped;
    for (const char c : point) {
      constexpr char kDigits[] = "01234567";
      const auto byte = static_cast<unsigned char>(c);
      if (std::string_view(" \t\n\\#").find(c) == std::string_view::npos)
        escaped += c;
      else
        escaped += {'\\', kDigits[byte >> 6], kDigits[(byte >> 3) & 7], kDigits[byte & 7]};
    }
    return point.empty() ? ""
                         : "33 24 0:28 / " + escaped + " rw,nosuid shared:9 - " + type + " none " +
                               options + "\n";
  };
  return line(mounts.own, "cgroup2", "rw") + line(mounts.cpu, "cgroup", "rw,cpuacct,cpu") +
         line(mounts.memory, "cgroup", "rw,memory");
}

void CheckMounts(const std::string& mountinfo) {
  const CgroupMounts mounts = penstock::os::ParseCgroupMounts(mountinfo);
  if (mountinfo.find("  ") == std::string::npos)
    Require(mounts.unified.empty() == mounts.own.empty());
  CgroupMounts written = mounts;
  written.unified = mounts.own;  // only the first of the mounts is written
  written.own_root = mounts.own.empty() ? "" : "/";
  Require(penstock::os::ParseCgroupMounts(MountinfoOf(mounts)) == written);
}

bool Climbs(const std::string& path) {
  return ("/" + path + "/").find("/../") != std::string::npos;
}

void CheckPlace(const std::string& cgroup) {
  static const Hierarchies hierarchies;
  const CgroupMounts& mounts = hierarchies.mounts;
  bool climbs = false;
  const auto place = penstock::os::FindCgroup(cgroup, mounts, [&climbs](const std::string& path) {
    climbs = climbs || Climbs(path);
    return path.starts_with('/') ? path : "";
  });
  for (const auto& [found, mount] : {std::pair{place.unified, mounts.unified},
                                     {place.cpu, mounts.cpu},
                                     {place.memory, mounts.memory}}) {
    Require(found.empty() || found == mount || found.starts_with(mount + "/"));
    Require(climbs || !Climbs(found));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parts = penstock::fuzz::Parts(data, size, 2);
  CheckMounts(parts[0]);
  CheckPlace(parts[1]);
  return 0;
}
