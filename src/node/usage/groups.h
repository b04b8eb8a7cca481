// Reads what the control groups of holders have used: of a run the lease's own group, of a pod the container's. Knows no devices.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/executor.h"
#include "node/ledger/ledger.h"
#include "os/cgroup_usage.h"

namespace penstock::node::usage {

/// The path of a container's group on the way to one of its processes: one below that of its pod, whose name has the pod's uid in it, as
/// it is or with '_' for '-' (the systemd driver of kubelets). Empty where the path leads through no such group.
std::string ContainerGroup(const std::string& path, const std::string& pod_uid);

/// On the control executor; files are read on the I/O executor.
class Groups {
 public:
  using Told = std::function<void(const std::string& lease, const os::CgroupUsage& usage)>;

  Groups(base::Executor& control, base::Executor& io, std::string proc_root, Told told);
  ~Groups();

  /// Who there is. Of one that has gone its group is read a last time, here and now, where it still is: kernel memory, microseconds.
  void Follow(const ledger::Snapshot& ledger);

  /// A collection has come: groups are read every kPace, those of young leases each time. A container's group is known once one of its
  /// processes is.
  void Look();

  static constexpr base::Duration kPace = std::chrono::seconds(5);
  static constexpr base::Duration kYoung = std::chrono::seconds(5);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::usage
