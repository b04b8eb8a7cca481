#include "node/ledger/checkpoint_writer.h"

#include <utility>

#include "node/ledger/checkpoint.h"

namespace penstock::node::ledger {

namespace {

constexpr base::Duration kRest =
    std::chrono::milliseconds(20);  // between two writes, because each waits for the disk twice

}  // namespace

LedgerCheckpointWriter::LedgerCheckpointWriter(base::Executor& control, base::Executor& io,
                                               Ledger& ledger, const std::string& path,
                                               const std::string& boot_id)
    : ledger_(ledger),
      file_(control, io, path,
            "cannot write the ledger's checkpoint; after a restart, leases are recovered only from "
            "cgroups and the kubelet",
            kRest, [&ledger, boot_id] {
              return [snapshot = ledger.Get(), boot_id] {
                return EncodeCheckpoint(*snapshot, boot_id);
              };
            }) {}

LedgerCheckpointWriter::~LedgerCheckpointWriter() { LedgerChanged(); }

void LedgerCheckpointWriter::LedgerChanged() {
  const auto before = std::exchange(last_, ledger_.Get());
  // Outside processes are not written: they are found again.
  if (last_->leases != before->leases) file_.Changed();
}

base::Result<std::vector<Lease>> LedgerCheckpointWriter::Load(const std::string& path,
                                                              const std::string& boot_id) {
  return os::LoadKept<std::vector<Lease>>(
      path, "the ledger's checkpoint",
      [&](const std::string& text) { return DecodeCheckpoint(text, boot_id, path); },
      kMaxCheckpointBytes);
}

}  // namespace penstock::node::ledger
