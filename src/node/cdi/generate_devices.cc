// Device files are those that the driver reports for a device; DRM files are found in sysfs.
#include "node/cdi/generate_devices.h"

#include <algorithm>
#include <utility>

#include "os/core/file.h"

namespace penstock::node::cdi {
namespace {

using api::cdi::DeviceNode;

/// Documentation/gpu/drm-uapi.rst: card<n>, renderD<n>; sysfs has a folder for each of them below
/// the folder of the PCI function.
void AddDrm(const device::PciAddress& pci, const DevFiles& files, const std::string& sysfs_root,
            DeviceFiles& found) {
  const auto names = os::ListDirectory(sysfs_root + "/bus/pci/devices/" + ToString(pci) + "/drm");
  if (!names.ok()) return;
  for (const std::string& name : *names)
    if (auto node = files.Node("/dev/dri/" + name); node.ok())
      found.nodes.push_back(*std::move(node));
  // udev's names (60-drm.rules).
  for (const char* kind : {"-card", "-render"}) {
    const std::string path = "/dev/dri/by-path/pci-" + ToString(pci) + kind;
    const auto target = files.ReadLink(path);
    if (!target.ok()) continue;
    const auto leads_to = [&](const DeviceNode& node) {
      return NameOf(node.path) == NameOf(*target);
    };
    if (std::ranges::any_of(found.nodes, leads_to)) found.links.push_back({path, *target});
  }
}

void Sort(DeviceFiles& files) {
  const auto by_path = [](const auto& a, const auto& b) { return a.path < b.path; };
  const auto same_path = [](const auto& a, const auto& b) { return a.path == b.path; };
  const auto sort = [&](auto& all) {
    std::ranges::stable_sort(all, by_path);
    all.erase(std::unique(all.begin(), all.end(), same_path), all.end());
  };
  sort(files.nodes);
  sort(files.links);
}

}  // namespace

base::Result<DeviceNode> NodeOf(const DevFiles& files, const device::DeviceFile& file) {
  auto node = files.Node(file.path);
  if (node.ok() || node.error().code() != Code::kFailedPrecondition || file.major == 0) return node;
  DeviceNode reported{.path = file.path,
                      .type = "c",
                      .major = file.major,
                      .minor = file.minor,
                      .permissions = "rwm"};
  if (std::string host_path = files.HostPath(file.path); host_path != file.path)
    reported.host_path = std::move(host_path);
  return reported;
}

base::Result<DeviceFiles> FilesOf(const device::Facts& device, const DevFiles& files,
                                  const std::string& sysfs_root) {
  const bool whole = device.parent.empty();
  DeviceFiles found;
  for (const device::DeviceFile& file : device.files) {
    if (whole && file.path.starts_with("/dev/dri/")) continue;  // added by AddDrm, with their links
    ASSIGN(DeviceNode node, NodeOf(files, file));
    found.nodes.push_back(std::move(node));
  }
  if (device.files.empty())
    return Error(Code::kNotFound, "the driver reports no device file for it");
  if (whole && device.pci) AddDrm(*device.pci, files, sysfs_root, found);
  Sort(found);
  return found;
}

DeviceFiles Merge(DeviceFiles some, const DeviceFiles& more) {
  some.nodes.insert(some.nodes.end(), more.nodes.begin(), more.nodes.end());
  some.links.insert(some.links.end(), more.links.begin(), more.links.end());
  Sort(some);
  return some;
}

}  // namespace penstock::node::cdi
