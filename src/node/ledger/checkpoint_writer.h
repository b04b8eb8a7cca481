// Writes the ledger's checkpoint after changes and reads it at start.
#pragma once

#include <string>
#include <vector>

#include "base/executor.h"
#include "node/ledger/ledger.h"
#include "os/kept_file.h"

namespace penstock::node::ledger {

/// Keeps the checkpoint at `path` current, as os::KeptFile writes and retries. It is written after
/// the change was published, so after the answer to the request that made the change, and at most
/// every 20 ms. Must not outlive the ledger.
class LedgerCheckpointWriter {
 public:
  LedgerCheckpointWriter(base::Executor& control, base::Executor& io, Ledger& ledger,
                         const std::string& path, const std::string& boot_id);

  ~LedgerCheckpointWriter();  ///< writes what is not on disk yet; blocks

  /// The ledger has changed.
  void LedgerChanged();

  /// Returns the leases that the last agent of this boot wrote; none where the file is corrupt or
  /// of a newer version (os::LoadKept): then control groups and the kubelet still know them.
  /// Blocks.
  static base::Result<std::vector<Lease>> Load(const std::string& path, const std::string& boot_id);

 private:
  Ledger& ledger_;
  std::shared_ptr<const Snapshot> last_ = std::make_shared<const Snapshot>();
  os::KeptFile file_;
};

}  // namespace penstock::node::ledger
