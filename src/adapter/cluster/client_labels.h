// Decides about the labels of the Node by whose value "true" the cluster runs programs that hold
// devices: such programs are stopped for a change of the devices, and started after it. Writes
// nothing.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "adapter/cluster/observed_node.h"
#include "base/backoff.h"

namespace penstock::adapter::cluster {

/// A label with another value than "true", or that is not there, stays as it is. What is found
/// paused at first is of an agent that did not end its change, and is started again; what others
/// pause later is left to them.
class ClientLabels {
 public:
  /// Key → the value that stops the programs.
  explicit ClientLabels(std::map<std::string, std::string> keys) : keys_(std::move(keys)) {}

  struct Plan {
    std::map<std::string, std::string> set;  ///< labels to write; empty: none
    std::optional<base::Duration> again;     ///< when to decide again even without a change
  };
  /// `pause`: the keys whose programs are to be stopped now. A label that others set to "true"
  /// during that is written again after 1 s, then with a back-off that doubles up to 10 min.
  Plan Decide(const ObservedNode& node, const std::set<std::string>& pause, base::TimePoint now);

  /// These are sent now. The answer may get lost, so what they pause is started again in any case.
  void Sent(const std::map<std::string, std::string>& set);

  /// The server accepted these.
  void Wrote(const std::map<std::string, std::string>& set, base::TimePoint now);

 private:
  const std::map<std::string, std::string> keys_;
  bool begun_ = false;
  std::set<std::string> ours_;  // that this agent, or an earlier one, has paused
  base::Backoff backoff_{std::chrono::seconds(1), std::chrono::minutes(10)};
  base::TimePoint not_before_{};  // of pausing again what was paused
};

}  // namespace penstock::adapter::cluster
