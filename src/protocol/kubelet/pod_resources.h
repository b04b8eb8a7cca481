// Asks the kubelet which containers have which devices: a client of pod-resources v1. Does not
// interpret the answers or join them with other sources.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "base/executor.h"

namespace penstock::protocol::kubelet {

/// The devices of one resource that one container has, ids sorted. The kubelet omits ordinary init
/// containers and gives no pod uid.
struct PodDevices {
  std::string namespace_name, pod, container;
  std::string resource;
  std::vector<std::string> ids;
  bool operator==(const PodDevices&) const = default;
};

/// Asks <kubelet-dir>/pod-resources/kubelet.sock over a new connection each time, so that none
/// idles and a restarted kubelet is found. Use on the executor's thread. Calls back on the
/// executor, never after the destructor. Errors are gRPC's: kUnavailable if there is no kubelet,
/// kDeadlineExceeded if it does not answer in time.
class PodResources {
 public:
  PodResources(base::Executor& executor, const std::string& kubelet_dir,
               base::Duration within = std::chrono::seconds(5));
  ~PodResources();

  /// Sorted by namespace, pod, container and resource.
  void List(std::function<void(base::Result<std::vector<PodDevices>>)> done);

  /// Resource → ids (sorted) of the healthy devices, allocated or not.
  void GetAllocatable(
      std::function<void(base::Result<std::map<std::string, std::vector<std::string>>>)> done);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::protocol::kubelet
