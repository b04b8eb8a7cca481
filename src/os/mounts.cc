#include "os/mounts.h"

#include <algorithm>
#include <cerrno>
#include <functional>

#include <sys/mount.h>

#include "base/core/strings.h"
#include "os/core/file.h"

namespace penstock::os {
namespace {

constexpr char kOwnMounts[] = "/proc/self/mountinfo";
constexpr std::size_t kMostMountinfo = 64u << 20;
constexpr int kPasses = 64;  // mounts on top of each other, each seen once the one above is gone

}  // namespace

std::string PlainMountPoint(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto code = text[i] == '\\' && i + 3 < text.size()
                          ? base::ParseInt(text.substr(i + 1, 3), 8)
                          : std::nullopt;
    plain += code ? static_cast<char>(*code) : text[i];
    if (code) i += 3;
  }
  return plain;
}

std::vector<std::string> MountsBelow(std::string_view mountinfo, std::string_view folder) {
  constexpr std::size_t kMountPoint = 4;  // proc(5)
  std::vector<std::string> found;
  for (const std::string& line : base::Split(mountinfo, '\n')) {
    const auto fields = base::Split(line, ' ');
    if (fields.size() <= kMountPoint) continue;
    std::string point = PlainMountPoint(fields[kMountPoint]);
    if (point == folder || point.starts_with(std::string(folder) + "/"))
      found.push_back(std::move(point));
  }
  std::ranges::stable_sort(found, std::greater(),
                           [](const std::string& point) { return std::ranges::count(point, '/'); });
  return found;
}

base::Result<Unmounted> UnmountBelow(const std::string& folder) {
  Unmounted done;
  for (int pass = 0; pass < kPasses; ++pass) {
    ASSIGN(const std::string mountinfo, ReadFile(kOwnMounts, kMostMountinfo));
    const auto points = MountsBelow(mountinfo, folder);
    if (points.empty()) return done;
    for (const std::string& point : points) {
      if (::umount2(point.c_str(), UMOUNT_NOFOLLOW) == 0) {
        ++done.mounts;
        continue;
      }
      if (errno == EBUSY && ::umount2(point.c_str(), UMOUNT_NOFOLLOW | MNT_DETACH) == 0) {
        ++done.mounts;
        done.lazily.push_back(point);
        continue;
      }
      // It went away together with one that it is a copy of.
      if (errno == EINVAL || errno == ENOENT) continue;
      return base::ErrnoError(errno, "unmount " + point);
    }
  }
  return base::Error(base::Code::kUnavailable,
                     folder + " has mounts that come back: another program mounts there");
}

bool IsMountPoint(const std::string& folder) {
  const auto mountinfo = ReadFile(kOwnMounts, kMostMountinfo);
  if (!mountinfo.ok()) return false;
  const auto points = MountsBelow(*mountinfo, folder);
  return std::ranges::find(points, folder) != points.end();
}

}  // namespace penstock::os
