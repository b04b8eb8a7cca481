// Manages the leases of the local allocator from start to end: moves processes into control groups,
// watches the groups and releases the leases.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "base/executor.h"
#include "base/lifetime.h"
#include "node/inventory/inventory.h"
#include "node/lease/cgroup_manager.h"
#include "node/lease/process_tree.h"
#include "node/lease/queue_checkpoint.h"
#include "node/ledger/checkpoint.h"
#include "node/ledger/ledger.h"

namespace penstock::node::lease {

/// Runs on the control executor. The destructor leaves the groups and their processes in place, for
/// the next agent.
class LocalLeases {
 public:
  using OpenGroups = std::function<base::Result<std::unique_ptr<CgroupManager>>()>;

  /// `on_ending` is called when the processes of a lease were asked to end, which changes its
  /// term. Recover does not call it.
  LocalLeases(base::Executor& control, base::Executor& io, std::string proc_root,
              inventory::Inventory& inventory, ledger::Ledger& ledger, OpenGroups open_groups,
              std::function<void()> on_ending = {});
  ~LocalLeases();

  /// What is to be held, and by which process. `pidfd` proves that the process is still the one
  /// that made the request.
  struct Admission {
    std::vector<ledger::Slot> slots;
    uid_t uid = 0;
    std::string user;
    std::string command;
    ledger::Process process;
    int pidfd = -1;
    std::map<std::string, std::string> labels = {};
    std::optional<base::Duration> time = {};  ///< after this time the run is ended
  };

  /// Returns why this process cannot be moved into a group, where that is known before anything is
  /// allocated; kFailedPrecondition.
  base::Status MayAdmit(pid_t pid) const;

  /// Records the lease and moves the process into its group, or follows the process where groups
  /// are unavailable. All or nothing. The lease ends by itself when all its processes have ended.
  base::Result<ledger::Lease> Admit(const Admission& admission);

  /// Restores the leases of the previous agent: groups by their notes, which have no limits, and
  /// leases with visibility only by the checkpoint and the processes. Blocks while it reads /proc.
  /// Call once, before the first Admit.
  void Recover(const std::vector<ledger::Lease>& checkpoint,
               const std::map<std::string, Term>& terms = {},
               const std::vector<ledger::LeaseLimits>& limits = {});

  /// Ends a lease: SIGTERM to its processes, and SIGKILL after kKillWait to those that remain.
  void End(const std::string& id, const std::string& why);

  /// By lease.
  const std::map<std::string, Term>& terms() const { return terms_; }

  /// Ends the leases of groups that are empty but whose end the kernel has not reported yet.
  void CheckAllGroups();

  /// Updates the ledger's leases that have a group: their processes, and whether any are left. Then
  /// calls `then`, once. Command lines are read on the I/O executor, in one pass for all callers
  /// that asked meanwhile; after kLongestRefresh `then` is called with what is known. Not called
  /// once this is destroyed.
  void RefreshProcesses(std::function<void()> then);
  static constexpr base::Duration kLongestRefresh = std::chrono::seconds(1);

  /// Denies access to the devices to processes of these groups ("/user.slice") that hold none of
  /// them, until the next call. Repeated when devices were described, and every kCloseAgain,
  /// because groups come and go. Not done while a lease exists that has no group.
  void CloseDevices(std::vector<std::string> cgroups);
  /// The inventory has changed.
  void DevicesChanged();
  static constexpr base::Duration kCloseAgain = std::chrono::seconds(2);
  struct Closed {
    std::vector<std::string> cgroups;  ///< from which access is denied now
    std::string problem;  ///< why other named groups are not closed, one sentence; empty: none
  };
  const Closed& closed() const { return closed_; }

  /// Why leases have visibility only; empty where they do not.
  const std::string& visibility_reason() const { return visibility_reason_; }

 private:
  base::Result<std::string> PlaceFor(const std::string& name, pid_t pid) const;
  base::Status MakeGroup(const ledger::Lease& lease, const Admission& admission);
  base::Status EnterGroup(const std::string& name, const Admission& admission);
  void PutBack(const std::string& name);
  void TryOpenGroups();
  void RecoverGroup(const std::string& name, const std::vector<ledger::Lease>& checkpoint,
                    const std::vector<ledger::LeaseLimits>& limits);
  void RecoverTree(const ledger::Lease& lease);
  void WatchGroup(const std::string& name);
  void CheckGroup(const std::string& name);
  void RemoveGroup(const std::string& name, base::Duration again);
  void TreeChanged(const ProcessTree& tree);
  void Close();
  Closed TryClose();
  std::vector<std::string> WithoutGroup() const;
  /// The processes of a lease's group, to be read, and those of them that are already known.
  struct Group {
    std::string lease;
    std::vector<pid_t> pids;
    std::vector<ledger::Process> known;
  };
  Group GroupOf(const std::string& lease, const std::vector<ledger::Process>& known) const;
  static std::vector<ledger::Process> Read(const std::string& proc_root, const Group& group);
  /// A caller that waits for the current processes.
  struct Requester {
    std::function<void()> then;  ///< empty once called
    base::TimerId timer = 0;     ///< calls `then` at the latest
  };
  using Requesters = std::vector<std::shared_ptr<Requester>>;
  void Answer(Requester& requester);
  void Refresh();
  void Refreshed(const std::map<std::string, std::vector<ledger::Process>>& found,
                 const Requesters& requesters);
  std::string NextId();
  void Begin(const std::string& id, Term term);
  void Release(const std::string& id);
  void Signal(const std::string& id, int signal) const;
  void Kill(const std::string& id);
  base::Duration Until(base::TimePoint time) const;

  base::Executor& control_;
  base::Executor& io_;
  const std::string proc_root_;
  inventory::Inventory& inventory_;
  ledger::Ledger& ledger_;
  const OpenGroups open_groups_;
  const std::function<void()> on_ending_;
  std::unique_ptr<CgroupManager> groups_;  // null: visibility only
  std::string visibility_reason_;
  base::TimePoint next_open_{};
  std::map<std::string, base::TimerId>
      watched_;  // groups, with the timer of a removal that is retried
  ProcessTreeWatch trees_;
  std::map<std::string, Term> terms_;
  std::map<std::string, base::TimerId> ends_,
      ending_;  // timers: of leases to be ended; of leases that are ending, for the next SIGKILL
  std::uint64_t next_id_ = 1;
  std::vector<std::string> to_close_;
  Closed closed_;
  base::TimerId close_ = 0;
  std::uint64_t described_ = 0;  // generation of the devices that were closed last
  bool refreshing_ = false;
  Requesters requesters_;  // callers that wait for the next refresh
  base::Lifetime lifetime_;
};

}  // namespace penstock::node::lease
