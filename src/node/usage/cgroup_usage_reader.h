// Reads the resource usage of holders from their control groups: for a run the group of the lease,
// for a pod the group of the container.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/executor.h"
#include "node/ledger/ledger.h"
#include "os/cgroup/cgroup_usage.h"

namespace penstock::node::usage {

/// Returns the part of the path of a process's group that is the container's group: one level below
/// the group of its pod, whose name contains the pod's uid, either unchanged or with '_' for '-'
/// (the kubelet's systemd driver). Empty if the path contains no such group.
std::string ContainerGroup(const std::string& path, const std::string& pod_uid);

/// On the control executor; files are read on the I/O executor.
class CgroupUsageReader {
 public:
  using Reported = std::function<void(const std::string& lease, const os::CgroupUsage& usage)>;

  CgroupUsageReader(base::Executor& control, base::Executor& io, std::string proc_root,
                    Reported reported);
  ~CgroupUsageReader();

  /// Sets the current leases. The group of a lease that ended is read one last time, if it still
  /// exists; the read takes microseconds of kernel memory access and happens on the caller's
  /// thread.
  void Follow(const ledger::Snapshot& ledger);

  /// Call after each collection: groups are read every kPace, those of leases younger than kYoung
  /// each time. A container's group is found through one of its processes.
  void Refresh();

  static constexpr base::Duration kPace = std::chrono::seconds(5);
  static constexpr base::Duration kYoung = std::chrono::seconds(5);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::usage
