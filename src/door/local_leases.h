// The leases of the local door from their beginning to their end: processes put into groups, watched, given back. Knows no protocol.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "base/executor.h"
#include "door/family.h"
#include "door/groups.h"
#include "door/queue_file.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"

namespace penstock::door {

/// On the control executor. At its end the groups and those in them stay as they are, for the next agent.
class LocalLeases {
 public:
  using OpenGroups = std::function<base::Result<std::unique_ptr<Groups>>()>;

  /// `asked_to_end` is called when the processes of a lease were asked to end, which changes its term. Not by Recover.
  LocalLeases(base::Executor& control, base::Executor& io, std::string proc_root, node::inventory::Inventory& inventory,
              node::ledger::Ledger& ledger, OpenGroups open_groups, std::function<void()> asked_to_end = {});
  ~LocalLeases();

  /// What is to be held, by which process. `pidfd` tells that the process still is the one that asked.
  struct Admission {
    std::vector<node::ledger::Slot> slots;
    uid_t uid = 0;
    std::string user;
    std::string command;
    node::ledger::Process process;
    int pidfd = -1;
    std::map<std::string, std::string> labels = {};
    std::optional<base::Duration> time = {};  ///< then it is ended
  };

  /// Why this process cannot be put into a group, where that is known before anything is given to it; kFailedPrecondition.
  base::Status MayAdmit(pid_t pid) const;

  /// Records the lease and puts the process into its group, or, where there can be no groups, follows it. All or nothing. The lease ends by
  /// itself when all its processes have.
  base::Result<node::ledger::Lease> Admit(const Admission& admission);

  /// Finds the leases of an agent before us: groups by their notes, and what was visibility only by the checkpoint and the processes.
  /// Blocks for a look at /proc. Once, before the first Admit.
  void Recover(const std::vector<node::ledger::Lease>& checkpoint, const std::map<std::string, Term>& terms = {});

  /// Ends a lease: SIGTERM to its processes, and SIGKILL after kKillWait to those that are left.
  void End(const std::string& id, const std::string& why);

  /// Of each lease.
  const std::map<std::string, Term>& terms() const { return terms_; }

  /// Ends the leases of groups in which nobody is any more and of which the kernel has not told so yet.
  void LookAtAllGroups();

  /// Brings the leases that have a group up to date in the ledger: their processes, and whether there are any. Then calls `then`, once.
  /// Command lines are read on the I/O executor, for all who asked meanwhile in one look; after kLongestLook `then` is called with what is
  /// known. Not called once this has ended.
  void RefreshProcesses(std::function<void()> then);
  static constexpr base::Duration kLongestLook = std::chrono::seconds(1);

  /// Closes the devices to the processes of these groups ("/user.slice") that hold none of them, until told otherwise; looks again when
  /// devices were described, and every kCloseAgain, since groups come and go. Not while leases live that have no group.
  void CloseDevices(std::vector<std::string> cgroups);
  static constexpr base::Duration kCloseAgain = std::chrono::seconds(2);
  struct Closed {
    std::vector<std::string> cgroups;  ///< to which they are closed now
    std::string problem;               ///< why not to others that were named, one sentence; empty: there are none
  };
  const Closed& closed() const { return closed_; }

  /// Why leases are visibility only; empty where they are not.
  const std::string& visibility_reason() const { return visibility_reason_; }

 private:
  base::Result<std::string> PlaceFor(const std::string& name, pid_t pid) const;
  base::Status MakeGroup(const node::ledger::Lease& lease, const Admission& admission);
  base::Status EnterGroup(const std::string& name, const Admission& admission);
  void PutBack(const std::string& name);
  void TryOpenGroups();
  void RecoverGroup(const std::string& name, const std::vector<node::ledger::Lease>& checkpoint);
  void RecoverFamily(const node::ledger::Lease& lease);
  void WatchGroup(const std::string& name);
  void LookAtGroup(const std::string& name);
  void RemoveGroup(const std::string& name, base::Duration again);
  void FamilyChanged(const Family& family);
  void Close();
  Closed TryClose();
  std::vector<std::string> WithoutGroup() const;
  /// The processes of a lease's group, to be read, and those of them that are known.
  struct Group {
    std::string lease;
    std::vector<pid_t> pids;
    std::vector<node::ledger::Process> known;
  };
  Group GroupOf(const std::string& lease, const std::vector<node::ledger::Process>& known) const;
  static std::vector<node::ledger::Process> Read(const std::string& proc_root, const Group& group);
  /// Who wants to know the processes as they are now.
  struct Asker {
    std::function<void()> then;  ///< empty once called
    base::TimerId timer = 0;     ///< at which it is called in any case
  };
  using Askers = std::vector<std::shared_ptr<Asker>>;
  void Answer(Asker& asker);
  void Look();
  void Looked(const std::map<std::string, std::vector<node::ledger::Process>>& found, const Askers& askers);
  std::string NextId();
  void Begin(const std::string& id, Term term);
  void Release(const std::string& id);
  void Signal(const std::string& id, int signal) const;
  void Kill(const std::string& id);
  base::Duration Until(base::TimePoint time) const;

  base::Executor& control_;
  base::Executor& io_;
  const std::string proc_root_;
  node::inventory::Inventory& inventory_;
  node::ledger::Ledger& ledger_;
  const OpenGroups open_groups_;
  const std::function<void()> asked_to_end_;
  std::unique_ptr<Groups> groups_;  // null: visibility only
  std::string visibility_reason_;
  base::TimePoint next_open_{};
  std::map<std::string, base::TimerId> watched_;  // groups, with the timer of a removal to be repeated
  FamilyWatch families_;
  std::map<std::string, Term> terms_;
  std::map<std::string, base::TimerId> ends_, ending_;  // timers: of leases to be ended; of those that are, of the next SIGKILL
  std::uint64_t next_id_ = 1;
  std::vector<std::string> to_close_;
  Closed closed_;
  base::TimerId close_ = 0;
  std::uint64_t described_ = 0;  // the devices that were closed last
  base::Subscription on_inventory_;
  bool looking_ = false;
  Askers askers_;                       // who wait for the next look
  std::shared_ptr<LocalLeases*> self_;  // null inside once destroyed: for functions on their way
};

}  // namespace penstock::door
