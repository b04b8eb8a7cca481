// Writes the ledger's checkpoint after changes and reads it at start.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "node/ledger/ledger.h"

namespace penstock::node::ledger {

/// Keeps the checkpoint at `path` current. It is written on the I/O executor after the change was
/// published, so after the answer to the request that made the change. Several changes become one
/// write, and writes are at least 20 ms apart. A failed write (full or read-only disk) is logged
/// and retried with the next change, after 10 s at the latest.
class LedgerCheckpointWriter {
 public:
  LedgerCheckpointWriter(base::Executor& control, base::Executor& io, Ledger& ledger,
                         std::string path, std::string boot_id);
  ~LedgerCheckpointWriter();

  /// Returns the leases that the last agent of this boot wrote; none where the file is corrupt or
  /// of a newer version (os::LoadKept): then control groups and the kubelet still know them.
  /// Blocks.
  static base::Result<std::vector<Lease>> Load(const std::string& path, const std::string& boot_id);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::ledger
