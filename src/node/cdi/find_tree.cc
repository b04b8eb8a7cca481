// Uses two roots: the driver's, and the host's around it.
#include "node/cdi/find_tree.h"

#include <utility>

#include <fcntl.h>

#include "os/core/file.h"

namespace penstock::node::cdi {
namespace {

std::string WithoutSlash(std::string path) {
  while (path.ends_with('/')) path.pop_back();
  return path;
}

}  // namespace

base::Result<DriverTree> DriverTree::Open(const Places& places) {
  ASSIGN(os::Root root, os::Root::Open(places.driver_root));
  DriverTree tree(std::move(root));
  const std::string here = WithoutSlash(places.driver_root);
  tree.host_root_ = places.host_driver_root.empty() ? here : WithoutSlash(places.host_driver_root);
  if (tree.host_root_.empty() || !here.ends_with(tree.host_root_)) return tree;
  auto outer = os::Root::Open(here.substr(0, here.size() - tree.host_root_.size()) + "/");
  if (outer.ok()) tree.outer_ = *std::move(outer);
  return tree;
}

base::Result<DriverTree::File> DriverTree::Find(const std::string& path, int flags) const {
  auto fd = root_.OpenFile(path, flags);
  if (fd.ok()) {
    ASSIGN(std::string inside, root_.PathOf(*fd));
    std::string host_path = host_root_ + inside;
    return File{*std::move(fd), std::move(inside), std::move(host_path)};
  }
  if (fd.error().code() != base::Code::kNotFound || !outer_) return fd.error();
  auto outside = outer_->OpenFile(host_root_ + path, flags);
  if (!outside.ok()) return fd.error();
  ASSIGN(std::string host_path, outer_->PathOf(*outside));
  return File{*std::move(outside), path, std::move(host_path)};
}

base::Result<DriverTree::Folder> DriverTree::List(const std::string& path) const {
  ASSIGN(File folder, Find(path, O_RDONLY | O_DIRECTORY));
  ASSIGN(auto names, os::ListAll(std::move(folder.fd), path));
  return Folder{std::move(folder.path), std::move(folder.host_path), std::move(names)};
}

base::Result<std::string> DriverTree::Read(const std::string& path) const {
  ASSIGN(const File file, Find(path, O_RDONLY | O_NONBLOCK));
  return os::ReadAll(file.fd.get(), path);
}

}  // namespace penstock::node::cdi
