// Writes the ledger's checkpoint after changes and reads it at start.
#pragma once

#include <string>
#include <vector>

#include "base/executor.h"
#include "node/ledger/checkpoint.h"
#include "node/ledger/ledger.h"
#include "os/kept_file.h"

namespace penstock::node::ledger {

/// Keeps the checkpoint current, as os::KeptFile writes and retries. It is written after the change
/// was published, so after the answer to the request that made the change, and at most every 20 ms.
/// Limits are on disk before the lease that has them: whenever the agent ends, no lease is known
/// without them. Must not outlive the ledger.
class LedgerCheckpointWriter {
 public:
  struct Files {
    std::string leases, limits;
  };
  LedgerCheckpointWriter(base::Executor& control, base::Executor& io, Ledger& ledger,
                         const Files& files, const std::string& boot_id);

  ~LedgerCheckpointWriter();  ///< writes what is not on disk yet; blocks

  /// The ledger has changed.
  void LedgerChanged();

  struct Remembered {
    std::vector<Lease> leases;        ///< with their limits
    std::vector<LeaseLimits> limits;  ///< for leases that are found again without the checkpoint
  };
  /// Returns what the last agent of this boot wrote; of a file that is corrupt or of a newer
  /// version nothing (os::LoadKept): control groups and the kubelet still know the leases. Blocks.
  static base::Result<Remembered> Load(const Files& files, const std::string& boot_id);

 private:
  void LimitsWritten();
  void WriteLeases();

  Ledger& ledger_;
  std::shared_ptr<const Snapshot> last_ = std::make_shared<const Snapshot>();
  std::shared_ptr<const Snapshot> limited_ = last_;  // the newest whose limits are on disk
  bool awaits_limits_ = false;                       // the checkpoint is to be written after them
  os::KeptFile leases_, limits_;                     // the destructors write, of the second first
};

}  // namespace penstock::node::ledger
