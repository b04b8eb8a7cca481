// Follows process trees by /proc, where no control group can: "visibility only". Knows no device.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "node/ledger/ledger.h"

namespace penstock::door {

/// The processes of one lease.
struct Family {
  std::string lease;
  std::string user;  ///< whose processes are believed when they say they belong to it
  std::vector<node::ledger::Process> members;
};

/// Name of the environment variable that says which lease a process was started under.
inline constexpr char kLeaseVariable[] = "PENSTOCK_LEASE";

/// The families as they are now: members that still live, all their descendants, and the user's processes whose environment names the lease
/// (a daemon that left its parents between two looks). Blocks: for an I/O thread.
std::vector<Family> FindFamilies(const std::string& proc_root, std::vector<Family> families);

/// Looks every second while there are families. On the control executor; the looking itself is done on the I/O executor.
class FamilyWatch {
 public:
  /// `changed` is called with each family whose members changed; without members it has ended and is forgotten.
  FamilyWatch(base::Executor& control, base::Executor& io, std::string proc_root, std::function<void(const Family&)> changed);
  ~FamilyWatch();

  void Follow(Family family);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::door
