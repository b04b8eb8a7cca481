// Finds the DaemonSets that a replaced operator has left in the operator's namespace, whose pods do
// the agents' work beside them. Deletes none: a user may still need one, such as a driver's.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "protocol/kube/api.h"

namespace penstock::cluster {

/// What was left, for a status.
struct OperandsLeft {
  std::string text;         ///< with the command that removes it; empty: nothing was left
  bool interferes = false;  ///< something of it changes what agents change, too
};
/// `names`: of DaemonSets. At most 20 are in the text. Pure.
OperandsLeft DescribeLeft(const std::vector<std::string>& names, const std::string& namespace_name);

/// Use on the api's executor. Watches the metadata of the DaemonSets that are not this operator's.
/// What prevents that also prevents the watch of its own, which says so.
class LeftOperands {
 public:
  /// `changed`: there is another answer.
  LeftOperands(protocol::kube::Api& api, std::string namespace_name, std::function<void()> changed);
  ~LeftOperands();

  void Start();
  bool synced() const;
  /// Those that one of `policies` (uids) controls: another operator has made them for it.
  OperandsLeft Find(const std::set<std::string>& policies) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::cluster
