// Converts between the messages of the device plugin and pod-resources APIs and this folder's
// structs; checks what the kubelet sends. Pure. Private to this folder: includes generated code, so
// include it in .cc files only.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "deviceplugin.pb.h"
#include "podresources.pb.h"
#include "protocol/kubelet/device_plugin.h"
#include "protocol/kubelet/pod_resources.h"

namespace penstock::protocol::kubelet {

/// Returns the ids of a request, checked against the list (sorted by id) and sorted.
/// kInvalidArgument: empty or repeated ids, also across containers, or none at all; kNotFound: an
/// id that is not in the list. Messages say what to do, since they become the pod's event.
base::Result<AllocateRequest> ReadRequest(const v1beta1::AllocateRequest& message,
                                          const std::vector<PluginDevice>& devices,
                                          const std::string& resource);

PreferRequest ReadRequest(const v1beta1::PreferredAllocationRequest& message);

/// Writes one response for each container. kInternal if their numbers differ, or if a text is not
/// UTF-8, which the kubelet could not read.
base::Status WriteEdits(const std::vector<ContainerEdits>& edits, std::size_t containers,
                        v1beta1::AllocateResponse& response);

/// Writes one response for each container; empty for those without a preference.
void WritePreference(const std::vector<std::vector<std::string>>& preferred, std::size_t containers,
                     v1beta1::PreferredAllocationResponse& response);

void WriteDevices(const std::vector<PluginDevice>& devices,
                  v1beta1::ListAndWatchResponse& response);

/// Merges the kubelet's entries, one for each device or NUMA node, into one for each container and
/// resource (PodResources::List).
std::vector<PodDevices> ReadPods(const v1::ListPodResourcesResponse& response);

/// Resource → ids, each once, sorted (PodResources::GetAllocatable).
std::map<std::string, std::vector<std::string>> ReadAllocatable(
    const v1::AllocatableResourcesResponse& response);

/// Returns the devices as they can be published: sorted by id, each id once (the first counts),
/// without ids that are empty or not UTF-8.
std::vector<PluginDevice> Normalize(std::vector<PluginDevice> devices);

}  // namespace penstock::protocol::kubelet
