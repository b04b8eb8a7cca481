// Reads a driver root and maps its paths to those on the host and in containers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "node/cdi/generate.h"
#include "os/core/root.h"

namespace penstock::node::cdi {

/// Any thread; reads the disk on each call. Links are followed inside the root: a driver
/// container's absolute links mean its own files. A link without a target inside the root is
/// followed from the host's root, where this process can see it: NixOS' /run/opengl-driver is a
/// folder of links into /nix/store.
class DriverTree {
 public:
  /// Errors by errno where there is no such root.
  static base::Result<DriverTree> Open(const Places& places);

  struct File {
    os::UniqueFd fd;
    std::string path;  ///< below the root, with all links resolved; the requested path where the
                       ///< file lies outside
    std::string host_path;  ///< with all links resolved
  };
  /// Opens the file at a path below the root. Errors by errno.
  base::Result<File> Find(const std::string& path, int flags) const;

  /// A folder with the names in it, sorted. Errors by errno.
  struct Folder {
    std::string path, host_path;
    std::vector<std::string> names;
  };
  base::Result<Folder> List(const std::string& path) const;

  /// Reads a whole file.
  base::Result<std::string> Read(const std::string& path) const;

  /// The root's path as this process sees it.
  const std::string& root() const { return root_.path(); }

 private:
  explicit DriverTree(os::Root root) : root_(std::move(root)) {}

  os::Root root_;
  std::string host_root_;          ///< without the trailing slash; empty: "/"
  std::optional<os::Root> outer_;  ///< the host's "/"; nothing: it is the root itself, or this
                                   ///< process does not see it
};

}  // namespace penstock::node::cdi
