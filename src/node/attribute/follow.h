// Keeps the ledger's processes true: who, of those the driver reports, belongs to a lease, and who is outside.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/executor.h"
#include "base/published.h"
#include "node/attribute/attribute.h"

namespace penstock::node::attribute {

/// Says of a process on a device that it is a server of the driver's, through which the device is shared: it works for those who share it,
/// so that it is nobody's and not outside either. On the I/O executor.
using IsServer = std::function<bool(const os::ProcessInfo&)>;

/// Follows inventory and ledger; looks processes up on the I/O executor and decides on the control executor. One look at a time; changes
/// meanwhile make another one.
class Follow {
 public:
  Follow(base::Executor& control, base::Executor& io, std::string proc_root, inventory::Inventory& inventory, ledger::Ledger& ledger,
         IsServer is_server = nullptr);
  ~Follow();  // on the control executor, or after it has stopped

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::attribute
