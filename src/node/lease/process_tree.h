// Follows process trees through /proc, for leases without a control group ("visibility only").
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "node/ledger/ledger.h"

namespace penstock::node::lease {

/// The processes of one lease.
struct ProcessTree {
  std::string lease;
  std::string user;  ///< the user whose processes are trusted when their environment names this
                     ///< lease
  std::vector<ledger::Process> members;
};

/// Name of the environment variable that says which lease a process was started under.
inline constexpr char kLeaseVariable[] = "PENSTOCK_LEASE";

/// Returns the current trees: members that still run, all their descendants, and the user's
/// processes whose environment names the lease (a daemon that left its parents between two reads).
/// Blocks: call it on an I/O thread.
std::vector<ProcessTree> FindProcessTrees(const std::string& proc_root,
                                          std::vector<ProcessTree> trees);

/// Reads every second while there are trees. Runs on the control executor; /proc is read on the
/// I/O executor.
class ProcessTreeWatch {
 public:
  /// `changed` is called with each tree whose members changed; a tree without members has ended
  /// and is forgotten.
  ProcessTreeWatch(base::Executor& control, base::Executor& io, std::string proc_root,
                   std::function<void(const ProcessTree&)> changed);
  ~ProcessTreeWatch();

  void Follow(ProcessTree tree);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::lease
