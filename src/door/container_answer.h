// What the kubelet is told for one container: its devices' edits, said in the ways that are in force. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "device/dialect.h"
#include "door/device_list.h"
#include "edge/kubelet/device_plugin.h"
#include "node/allocate/allocate.h"
#include "node/cdi/keeper.h"

namespace penstock::door {

/// A device of another class (device::CdiClass) that containers get with their own.
struct FurtherDevice {
  std::string mode;    ///< "gds"
  std::string name;    ///< "all", "0"
  bool named = false;  ///< a specification names it for the kubelet
  std::string kind;    ///< by which it does
  bool operator==(const FurtherDevice&) const = default;
};

/// The devices of the classes that are configured ("gds", "imex=0"), as far as one of these vendors has such a class. `written` null: no
/// specifications are written here, and whether a device is there is not known.
std::vector<FurtherDevice> FurtherDevices(const std::vector<std::string>& classes, const device::Dialect& dialect,
                                          const node::cdi::Written* written);

/// Those of `classes` that are on this node for none of these vendors, as they are configured; where nothing is written, all.
std::vector<std::string> MissingClasses(const std::vector<std::string>& classes, const std::vector<const device::Dialect*>& dialects,
                                        const node::cdi::Written* written);

/// What a container gets, and how it is said.
struct ContainerSay {
  const DeviceListing& listing;
  const api::ContainersConfig& config;
  node::allocate::Consumer consumer = node::allocate::Consumer::kContainer;
  const node::cdi::Written* written = nullptr;               ///< see FurtherDevices
  std::string unique;                                        ///< tells this container's annotations from others'
  std::function<std::string(const std::string&)> host_path;  ///< where a device file ("/dev/nvidia0") lies on this machine
};

/// `edits`: those of exactly these devices (node::allocate::Commit). By CDI devices are named by id, under node::cdi::KubeletKind; an
/// annotation's key is NVIDIA's, "<prefix>nvidia-device-plugin_<unique>" (device plugin, internal/plugin/server.go). Where CDI gives
/// everything the vendor's variable says that nobody else has to.
edge::kubelet::ContainerEdits AnswerFor(device::Edits edits, const std::vector<node::allocate::VendorDevices>& devices,
                                        const ContainerSay& say);

}  // namespace penstock::door
