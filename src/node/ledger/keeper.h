// Writes the checkpoint after changes, and reads it at start.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "node/ledger/ledger.h"

namespace penstock::node::ledger {

/// The checkpoint at `path`, kept current: written on the I/O executor after the change was published, so after the answer that made it;
/// several changes become one write, and two writes are 20 ms apart at least. A failed write (full or read-only disk) is logged and
/// repeated with the next change, at the latest after 10 s.
class Keeper {
 public:
  Keeper(base::Executor& control, base::Executor& io, Ledger& ledger, std::string path, std::string boot_id);
  ~Keeper();

  /// What was held when the last agent of this boot wrote; nothing where it is damaged or of a newer version (os::LoadKept):
  /// control groups and the kubelet know it then. Blocks.
  static base::Result<std::vector<Lease>> Load(const std::string& path, const std::string& boot_id);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::ledger
