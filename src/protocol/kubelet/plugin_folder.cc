// Removes only sockets that are provably dead and ours.
#include "protocol/kubelet/plugin_folder.h"

#include <ctime>
#include <random>

#include <sys/stat.h>
#include <unistd.h>

#include "os/core/file.h"
#include "protocol/kubelet/other_plugin.h"

namespace penstock::protocol::kubelet {
namespace {

// A socket that was bound a moment ago and has no listener yet looks dead.
constexpr std::time_t kYoungSeconds = 10;

}  // namespace

std::optional<FileIdentity> SocketAt(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) return std::nullopt;
  // The modification time of a socket file is the time of its creation; its change time moves with
  // chmod and relabelling.
  return FileIdentity{status.st_dev, status.st_ino, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

std::vector<std::string> SocketNames(const std::string& folder) {
  std::vector<std::string> sockets;
  const auto names = os::ListDirectory(folder);
  if (!names.ok()) return sockets;
  for (const auto& name : *names) {
    if (SocketAt(folder + "/" + name)) sockets.push_back(name);
  }
  return sockets;
}

void RemoveLeftovers(const std::string& folder, const std::string& prefix,
                     const std::string& proc_root) {
  for (const auto& name : SocketNames(folder)) {
    if (!name.starts_with(prefix) || ProbeSocket(folder, name, proc_root).alive) continue;
    const std::string path = folder + "/" + name;
    const auto identity = SocketAt(path);
    if (identity && identity->made_seconds + kYoungSeconds < std::time(nullptr))
      ::unlink(path.c_str());
  }
}

std::string UniqueSocketName(const std::string& prefix) {
  constexpr char kHex[] = "0123456789abcdef";
  std::random_device random;
  std::string name = prefix + "-" + std::to_string(::getpid()) + "-";
  for (unsigned i = 0, bits = random(); i < 8; ++i, bits >>= 4) name += kHex[bits & 15];
  return name + ".sock";
}

}  // namespace penstock::protocol::kubelet
