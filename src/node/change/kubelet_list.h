// Asks the kubelet which devices it still counts as allocatable, until it has taken note that
// devices were withdrawn from it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "base/core/result.h"
#include "base/executor.h"

namespace penstock::node::change {

/// On the control executor.
class KubeletList {
 public:
  /// KubeletAdapter::QueryCounted: the ids of the devices that the kubelet may allocate.
  using Ask = std::function<void(std::function<void(base::Result<std::set<std::string>>)>)>;

  /// `ask`: null where the kubelet gets no devices, which then needs no acknowledgement.
  /// `answered` is called after each answer.
  KubeletList(base::Executor& control, Ask ask, std::function<void()> answered);
  ~KubeletList();

  /// The devices that are withdrawn from the kubelet now. Asks until it counts none of them, at
  /// once and then less often.
  void Await(const std::set<std::string>& withdrawn);

  /// Whether the kubelet has taken note of the withdrawal of this device.
  bool HasTakenNote(const std::string& device) const;

  /// Why the kubelet's list is unknown; empty: it is known.
  const std::string& problem() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::change
