#include "node/ledger/checkpoint_writer.h"

#include <utility>

#include "os/core/file.h"

namespace penstock::node::ledger {

namespace {

constexpr base::Duration kRest =
    std::chrono::milliseconds(20);  // between two writes, because each waits for the disk twice

}  // namespace

LedgerCheckpointWriter::LedgerCheckpointWriter(base::Executor& control, base::Executor& io,
                                               Ledger& ledger, const Files& files,
                                               const std::string& boot_id)
    : ledger_(ledger),
      leases_(control, io, files.leases,
              "cannot write the ledger's checkpoint; after a restart, leases are recovered only "
              "from cgroups and the kubelet",
              kRest,
              [this, boot_id] {
                return
                    [snapshot = limited_, boot_id] { return EncodeCheckpoint(*snapshot, boot_id); };
              }),
      limits_(control, io, files.limits,
              "cannot write the limits of leases; after a restart, they are not known",
              base::Duration::zero(), [&ledger, boot_id] {
                return
                    [snapshot = ledger.Get(), boot_id] { return EncodeLimits(*snapshot, boot_id); };
              }) {
  limits_.OnWrite([this] { LimitsWritten(); });
  // Without those of leases that have ended since.
  if (os::Exists(files.limits)) limits_.Changed();
}

LedgerCheckpointWriter::~LedgerCheckpointWriter() {
  limits_.OnWrite(nullptr);
  LedgerChanged();
  LimitsWritten();  // the destructor of limits_ writes first
}

void LedgerCheckpointWriter::LedgerChanged() {
  const auto before = std::exchange(last_, ledger_.Get());
  // Outside processes are not written: they are found again.
  if (last_->leases == before->leases) return;
  if (LimitsDiffer(last_->leases, before->leases)) {
    awaits_limits_ = true;
    limits_.Changed();
  }
  if (!awaits_limits_) WriteLeases();
}

/// Or could not be written: without them, a lease is still held.
void LedgerCheckpointWriter::LimitsWritten() {
  if (std::exchange(awaits_limits_, false)) WriteLeases();
}

void LedgerCheckpointWriter::WriteLeases() {
  limited_ = last_;
  leases_.Changed();
}

base::Result<LedgerCheckpointWriter::Remembered> LedgerCheckpointWriter::Load(
    const Files& files, const std::string& boot_id) {
  Remembered remembered;
  ASSIGN(remembered.leases,
         os::LoadKept<std::vector<Lease>>(
             files.leases, "the ledger's checkpoint",
             [&](const std::string& text) { return DecodeCheckpoint(text, boot_id, files.leases); },
             kMaxCheckpointBytes));
  ASSIGN(remembered.limits,
         os::LoadKept<std::vector<LeaseLimits>>(
             files.limits, "the file of leases' limits",
             [&](const std::string& text) { return DecodeLimits(text, boot_id, files.limits); },
             kMaxCheckpointBytes));
  for (Lease& lease : remembered.leases) RestoreLimits(remembered.limits, lease);
  return remembered;
}

}  // namespace penstock::node::ledger
