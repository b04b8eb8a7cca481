#include "node/cdi/dev_files.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace penstock::node::cdi {
namespace {

using api::cdi::DeviceNode;

constexpr std::string_view kDevFolder = "/dev";
constexpr std::uint32_t kForEverybody = 06;

}  // namespace

base::Result<DevFiles> DevFiles::Open(const Places& places) {
  ASSIGN(os::Root root, os::Root::Open(places.dev_root));
  const bool holds_dev = root.Exists(std::string(kDevFolder));
  return DevFiles(std::move(root), holds_dev,
                  places.host_dev_root.empty() ? places.dev_root : places.host_dev_root);
}

std::string DevFiles::Below(const std::string& path) const {
  return holds_dev_ ? path : path.substr(kDevFolder.size());
}

base::Result<DeviceNode> DevFiles::Node(const std::string& path) const {
  if (!path.starts_with("/dev/")) return Error(Code::kInvalidArgument, path + " is not below /dev");
  ASSIGN(const os::UniqueFd fd, root_.OpenFile(Below(path), O_PATH | O_NOFOLLOW));
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return base::ErrnoError(errno, "stat " + path);
  if (!S_ISCHR(info.st_mode))
    return Error(Code::kFailedPrecondition, path + " is not a character device");
  DeviceNode node;
  node.path = path;
  if (std::string host_path = HostPath(path); host_path != path)
    node.host_path = std::move(host_path);
  node.major = ::major(info.st_rdev);
  node.minor = ::minor(info.st_rdev);
  node.file_mode = info.st_mode & 0777;
  node.permissions = "rwm";
  if (info.st_gid != 0) node.gid = info.st_gid;
  return node;
}

std::string DevFiles::HostPath(const std::string& path) const {
  return (host_root_ == "/" ? "" : host_root_) + Below(path);
}

base::Result<std::string> DevFiles::ReadLink(const std::string& path) const {
  return root_.ReadLink(Below(path));
}

std::vector<std::string> DevFiles::Match(const std::string& pattern) const {
  const auto slash = pattern.rfind('/');
  const std::string folder = pattern.substr(0, slash), names = pattern.substr(slash + 1);
  const auto listed = root_.List(Below(folder) + "/");
  std::vector<std::string> found;
  if (!listed.ok()) return found;
  for (const std::string& name : *listed)
    if (::fnmatch(names.c_str(), name.c_str(), FNM_PERIOD) == 0 && Node(folder + "/" + name).ok())
      found.push_back(folder + "/" + name);
  return found;
}

void AddNode(api::cdi::CdiEdits& edits, DeviceNode node, bool additional_gids) {
  const auto same = [&](const DeviceNode& other) { return other.path == node.path; };
  if (std::ranges::any_of(edits.nodes, same)) return;
  auto& gids = edits.additional_gids;
  const bool for_everybody = (node.file_mode.value_or(0) & kForEverybody) == kForEverybody;
  if (additional_gids && node.gid && !for_everybody &&
      std::ranges::find(gids, *node.gid) == gids.end())
    gids.push_back(*node.gid);
  edits.nodes.push_back(std::move(node));
}

}  // namespace penstock::node::cdi
