// A driver root: its files by the names that the root itself, the host and containers have for them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "node/cdi/generate.h"
#include "os/core/root.h"

namespace penstock::node::cdi {

/// Any thread; looks at the disk with each call. Links are followed inside the root: a driver container's absolute links mean its own
/// files. What leads nowhere there is followed from where the host's root is, so far as this process sees it: NixOS' /run/opengl-driver is
/// a folder of links into /nix/store.
class DriverTree {
 public:
  /// Errors by errno where there is no such root.
  static base::Result<DriverTree> Open(const Places& places);

  struct File {
    os::UniqueFd fd;
    std::string path;       ///< below the root, with no link on the way; as it was asked for where it lies outside
    std::string host_path;  ///< with no link on the way
  };
  /// Opens what is at a path below the root. Errors by errno.
  base::Result<File> Find(const std::string& path, int flags) const;

  /// A folder with the names in it, sorted. Errors by errno.
  struct Folder {
    std::string path, host_path;
    std::vector<std::string> names;
  };
  base::Result<Folder> List(const std::string& path) const;

  /// The whole of a file.
  base::Result<std::string> Read(const std::string& path) const;

  /// As this process sees it.
  const std::string& root() const { return root_.path(); }

 private:
  explicit DriverTree(os::Root root) : root_(std::move(root)) {}

  os::Root root_;
  std::string host_root_;          ///< without the slash at the end; empty: "/"
  std::optional<os::Root> outer_;  ///< what the host calls "/"; nothing: it is the root itself, or this process does not see it
};

}  // namespace penstock::node::cdi
