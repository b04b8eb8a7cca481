// Removes the taints with which nodes register to keep pods away until their devices can be used.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "protocol/kube/api.h"

namespace penstock::cluster {

/// Use on the api's executor. Nothing puts such a taint back: a node that is not ready later keeps
/// its pods, and new ones stay away for the lack of devices.
class StartupTaints {
 public:
  /// `changed`: problems() has changed.
  StartupTaints(protocol::kube::Api& api, std::function<void()> changed);
  ~StartupTaints();

  /// Sets the keys of the taints; none: no node is looked at.
  void Want(std::vector<std::string> keys);

  /// Sets the nodes on which pods can start. Each that was not in the last set is read once.
  void SetReady(std::set<std::string> nodes);

  std::uint64_t writes() const;  ///< since the start
  /// Errors of reading and writing nodes, by their texts; each ends with a success on its node.
  std::vector<std::string> problems() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::cluster
