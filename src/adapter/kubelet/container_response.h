// Builds the response to the kubelet for one container: the edits of its devices, by the strategies
// in force. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "adapter/kubelet/device_list.h"
#include "device/dialect.h"
#include "node/allocate/allocate.h"
#include "node/cdi/spec_writer.h"
#include "protocol/kubelet/device_plugin.h"

namespace penstock::adapter::kubelet {

/// A device of another class (device::CdiClass) that containers get with their own devices.
struct AuxiliaryDevice {
  std::string mode;    ///< "gds"
  std::string name;    ///< "all", "0"
  bool named = false;  ///< a specification names it for the kubelet
  std::string kind;    ///< CDI kind under which it is named
  bool operator==(const AuxiliaryDevice&) const = default;
};

/// Returns the devices of the configured classes ("gds", "imex=0") that this vendor has. `written`
/// null: no specifications are written on this node, and whether a device is present is unknown.
std::vector<AuxiliaryDevice> AuxiliaryDevices(const std::vector<std::string>& classes,
                                              const device::Dialect& dialect,
                                              const node::cdi::Written* written);

/// Returns those of `classes`, as configured, that none of these vendors has on this node; all of
/// them if `written` is null.
std::vector<std::string> MissingClasses(const std::vector<std::string>& classes,
                                        const std::vector<const device::Dialect*>& dialects,
                                        const node::cdi::Written* written);

/// What a container gets, and by which strategies.
struct InjectionMode {
  const DeviceListChoice& listing;
  const api::ContainersConfig& config;
  node::allocate::ConsumerKind consumer = node::allocate::ConsumerKind::kContainer;
  const node::cdi::Written* written = nullptr;  ///< see AuxiliaryDevices
  std::string (*unique)() = nullptr;            ///< returns another text each time
  /// Path of a device file ("/dev/nvidia0") on this machine.
  std::function<std::string(const std::string&)> host_path;
};

/// Returns the response. `edits` are those of exactly these devices (node::allocate::Commit). CDI
/// names devices by id, under node::cdi::KubeletKind; an annotation's key is NVIDIA's,
/// "<prefix>nvidia-device-plugin_<unique>" (device plugin, internal/plugin/server.go). Where CDI
/// alone injects the devices, the vendor's variable says that no other component needs to.
protocol::kubelet::ContainerEdits BuildContainerResponse(
    device::Edits edits, const std::vector<node::allocate::VendorDevices>& devices,
    const InjectionMode& injection);

}  // namespace penstock::adapter::kubelet
