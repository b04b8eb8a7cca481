// Keeps the ledger's processes current: which of the processes that the driver reports belong to a
// lease, and which are outside processes.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/executor.h"
#include "node/attribute/attribute.h"

namespace penstock::node::attribute {

/// Whether a process on a device is a server of the driver through which the device is shared. Such
/// a server works for the holders of shares, so it belongs to no lease and is not an outside
/// process either. Called on the I/O executor.
using IsServer = std::function<bool(const os::ProcessInfo&)>;

/// Looks processes up on the I/O executor and decides on the control
/// executor. One lookup runs at a time; changes during it cause another one.
class Follow {
 public:
  Follow(base::Executor& control, base::Executor& io, std::string proc_root,
         inventory::Inventory& inventory, ledger::Ledger& ledger, IsServer is_server = nullptr);
  ~Follow();  // on the control executor, or after it has stopped

  /// Inventory or ledger have changed.
  void DevicesChanged();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::attribute
