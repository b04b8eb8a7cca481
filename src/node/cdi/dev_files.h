// Finds device files below a dev root, as CDI specifications name them. Opens no device.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/cdi/spec.h"
#include "base/core/result.h"
#include "node/cdi/generate.h"
#include "os/core/root.h"

namespace penstock::node::cdi {

/// The folders of device files and of sysfs, in containers and in a system's own files.
inline constexpr std::string_view kDev = "/dev/", kSys = "/sys/";

/// Any thread; reads the disk on each call.
class DevFiles {
 public:
  /// Errors by errno where there is no dev root.
  static base::Result<DevFiles> Open(const Places& places);

  /// Returns a device file by its path in containers ("/dev/nvidia0"). A link to a device file does
  /// not count, as in engines (lstat). kNotFound: it does not exist; kFailedPrecondition: it is not
  /// a character device.
  base::Result<api::cdi::DeviceNode> Node(const std::string& path) const;

  /// The path on the host.
  std::string HostPath(const std::string& path) const;

  /// The target of a link below /dev.
  base::Result<std::string> ReadLink(const std::string& path) const;

  /// Character devices whose paths match, sorted. Only the last part of the pattern may be a glob.
  std::vector<std::string> Match(const std::string& pattern) const;

 private:
  DevFiles(os::Root root, bool holds_dev, std::string host_root)
      : root_(std::move(root)), holds_dev_(holds_dev), host_root_(std::move(host_root)) {}
  std::string Below(const std::string& path) const;

  os::Root root_;
  bool holds_dev_;  ///< else the root is a /dev itself
  std::string host_root_;
};

/// Adds the node where none has its path, and with it the group that may open it where not all
/// users may.
void AddNode(api::cdi::CdiEdits& edits, api::cdi::DeviceNode node, bool additional_gids);

}  // namespace penstock::node::cdi
