// The kubelet's own view of who has which devices: pod-resources v1, as a client. Believes nothing, joins nothing.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "base/executor.h"

namespace penstock::edge::kubelet {

/// What one container has of one resource, ids sorted. The kubelet leaves out ordinary init containers, and names no pod uid.
struct PodDevices {
  std::string namespace_name, pod, container;
  std::string resource;
  std::vector<std::string> ids;
  bool operator==(const PodDevices&) const = default;
};

/// Asks <kubelet-dir>/pod-resources/kubelet.sock, a fresh connection each time, so that nothing idles and a restarted kubelet is found.
/// Calls back on the executor; never after the destructor. On the executor's thread. Errors are gRPC's: kUnavailable where there is no
/// kubelet, kDeadlineExceeded where it does not answer in time.
class PodResources {
 public:
  PodResources(base::Executor& executor, const std::string& kubelet_dir, base::Duration within = std::chrono::seconds(5));
  ~PodResources();

  /// Sorted by namespace, pod, container and resource.
  void List(std::function<void(base::Result<std::vector<PodDevices>>)> done);

  /// Resource → ids (sorted) of the devices that are healthy, given out or not.
  void GetAllocatable(std::function<void(base::Result<std::map<std::string, std::vector<std::string>>>)> done);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::edge::kubelet
