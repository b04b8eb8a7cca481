// Removes the CDI specifications that an earlier agent has left where this one writes none: engines
// reject a device that one of them defines and another program's file, too.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "base/executor.h"
#include "base/lifetime.h"
#include "node/ledger/ledger.h"

namespace penstock::app {

/// On the control loop; files are removed on `io`.
class LeftSpecifications {
 public:
  /// Looks for files in `folder`: node::cdi::OwnFiles with `kinds`, but for another plugin's;
  /// `hook` as for node::cdi::IsOfAnotherPlugin. Blocks for that.
  LeftSpecifications(base::Executor& control, base::Executor& io,
                     const node::ledger::Ledger& ledger, std::string folder,
                     const std::set<std::string>& kinds, std::string hook,
                     std::function<void()> changed);

  /// Call once it is known who held devices before this agent. The files go when these leases have
  /// ended: containers of a pod may be created by them again.
  void HoldersKnown();

  /// The ledger has changed.
  void LedgerChanged();

  /// Which files stay, until when; empty: none is left.
  std::string problem() const;

 private:
  void RemoveIfFree();
  void Removed(std::vector<std::string> left, const std::string& why);

  base::Executor& control_;
  base::Executor& io_;
  const node::ledger::Ledger& ledger_;
  const std::string folder_, hook_;
  const std::function<void()> changed_;
  std::vector<std::string> files_;  // names
  std::set<std::string> holders_;   // leases
  bool known_ = false, removing_ = false;
  std::string why_not_;  // removed
  base::Lifetime lifetime_;
};

}  // namespace penstock::app
