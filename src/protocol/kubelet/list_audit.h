// Finds out whether the kubelet still counts the devices of a list that it reads. Reports a
// verdict; the caller registers. Private to this folder.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "base/executor.h"
#include "protocol/kubelet/device_plugin.h"

namespace penstock::protocol::kubelet {

/// When another plugin of the same resource came and went, the kubelet drops the resource's devices
/// and leaves our stream open. Only the kubelet's own list (GetAllocatableResources) shows that.
/// This list also lags behind what the kubelet reads, by tens of milliseconds on a quiet node, so
/// one answer proves nothing: the devices are lost if two answers in a row count none of them, both
/// to questions asked a while after the last change of the list, of the streams and of the
/// registration. Use all functions on the executor.
class ListAudit {
 public:
  using List = std::shared_ptr<const std::vector<PluginDevice>>;
  /// The ids of our resource that the kubelet counts, sorted.
  using Counted = base::Result<std::vector<std::string>>;
  struct Callbacks {
    /// The list that is published now; another list is another object.
    std::function<List()> list;
    std::function<void(std::function<void(Counted)>)> query;
    std::function<void()> lost;
  };
  ListAudit(base::Executor& executor, AuditTimes times, Callbacks callbacks);
  ~ListAudit();

  /// The kubelet started to read our list, or we registered with it: asks once that has settled.
  void Changed();

  /// Sockets of other plugins appeared or disappeared, or one of several streams ended.
  void Hint();

  /// The kubelet does not read our list.
  void Stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::protocol::kubelet
