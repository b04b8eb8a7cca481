#include "os/process/device_users.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/core/strings.h"
#include "os/core/file.h"
#include "os/process/process.h"
#include "os/process/process_memory.h"

namespace penstock::os {
namespace {

constexpr std::string_view kDev = "/dev/";
constexpr std::size_t kMostMappings = 16u << 20;  // bytes

bool IsDeviceOf(std::string_view path, const std::vector<std::string>& names) {
  const std::size_t dev = path.rfind(kDev);
  if (dev == std::string_view::npos) return false;
  const std::string_view name = path.substr(dev + kDev.size());
  return std::ranges::any_of(names, [&](const std::string& one) { return name.starts_with(one); });
}

struct Seen {
  DeviceUser user;
  bool character = false;
};

class Search {
 public:
  Search(const std::string& proc, const std::vector<std::string>& names,
         const IsSearchedDevice& is_searched, std::size_t most)
      : proc_(proc), names_(names), is_searched_(is_searched), left_(most) {}

  std::optional<Seen> Look(pid_t pid) {
    auto opened = LookAtFiles(pid);
    if (opened && opened->character) return opened;
    auto mapped = LookAtMappings(pid);
    return mapped && (!opened || mapped->character) ? mapped : opened;
  }

 private:
  std::optional<Seen> LookAtFiles(pid_t pid) {
    const std::string folder = proc_ + "/" + std::to_string(pid) + "/fd";
    std::optional<Seen> found;
    const auto numbers = ListDirectory(folder);
    if (!numbers.ok()) return found;
    for (const std::string& number : *numbers) {
      if (left_ == 0) return found;
      --left_;
      const std::string link = folder + "/" + number;
      const auto target = ReadLink(link);
      if (!target.ok() || !IsDeviceOf(*target, names_)) continue;
      auto seen = See({pid, *target}, link);
      if (seen && seen->character) return seen;
      if (!found) found = std::move(seen);
    }
    return found;
  }

  std::optional<Seen> LookAtMappings(pid_t pid) {
    constexpr std::size_t kPath = 5;  // the field of a line, proc(5)
    const std::string folder = proc_ + "/" + std::to_string(pid);
    const UniqueFd process(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat status {};
    if (!process || ::fstat(process.get(), &status) != 0) return std::nullopt;
    const auto maps = ReadMemoryOf(process, "maps", kMostMappings, status.st_uid);
    if (!maps.ok() || maps->find(kDev) == std::string::npos) return std::nullopt;
    std::optional<Seen> found;
    for (const std::string& line : base::Split(*maps, '\n')) {
      const std::size_t path = line.find('/');
      if (path == std::string::npos || !IsDeviceOf(line.substr(path), names_)) continue;
      const auto fields = base::Split(line, ' ');
      if (fields.size() <= kPath) continue;
      auto seen = See({pid, line.substr(path)}, folder + "/map_files/" + fields[0]);
      if (seen && seen->character) return seen;
      if (!found) found = std::move(seen);
    }
    return found;
  }

  /// From what the kernel has in memory: asks no file system, which might not answer. Nothing for
  /// a device that is not searched.
  std::optional<Seen> See(DeviceUser user, const std::string& link) const {
    struct statx status {};
    const bool character =
        ::statx(AT_FDCWD, link.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE, &status) == 0 &&
        S_ISCHR(status.stx_mode);
    if (character && is_searched_ && !is_searched_(status.stx_rdev_major, status.stx_rdev_minor))
      return std::nullopt;
    return Seen{std::move(user), character};
  }

  const std::string& proc_;
  const std::vector<std::string>& names_;
  const IsSearchedDevice& is_searched_;
  std::size_t left_;
};

}  // namespace

std::vector<DeviceUser> FindDeviceUsers(const std::string& proc,
                                        const std::vector<std::string>& names,
                                        const IsSearchedDevice& is_searched, std::size_t most) {
  std::vector<Seen> all;
  Search search(proc, names, is_searched, most);
  for (const pid_t pid : ListProcesses(proc))
    if (auto seen = search.Look(pid)) all.push_back(*std::move(seen));
  const bool any_real = std::ranges::any_of(all, &Seen::character);
  std::vector<DeviceUser> users;
  for (Seen& seen : all)
    if (seen.character || !any_real) users.push_back(std::move(seen.user));
  return users;
}

}  // namespace penstock::os
