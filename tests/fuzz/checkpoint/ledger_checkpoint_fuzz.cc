// Fuzzes the ledger's checkpoint, which a crash, a full disk or another version of the agent may
// have damaged.
#include <cstdint>

#include "../oracle.h"
#include "node/ledger/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  using fuzz::Require;
  const auto leases = node::ledger::DecodeCheckpoint(fuzz::Text(data, size), "boot", "fuzz");
  if (!leases.ok()) {
    const base::Code code = leases.error().code();
    Require(code == base::Code::kDataLoss || code == base::Code::kFailedPrecondition);
    Require(leases.error().message().find("fuzz") != std::string::npos);
    return 0;
  }
  for (const auto& lease : *leases) {
    for (const auto& slot : lease.slots)
      Require(!slot.id.empty() && !slot.device.empty() && slot.shape.shares >= 1);
    for (const auto& process : lease.processes)
      Require(process.pid > 0);  // for kill(2), 0 and negative numbers are process groups
  }
  node::ledger::Snapshot snapshot;
  snapshot.leases = *leases;
  const std::string text = node::ledger::EncodeCheckpoint(snapshot, "boot");
  const auto again = node::ledger::DecodeCheckpoint(text, "boot", "fuzz");
  Require(again.ok() && *again == *leases);
  const auto other = node::ledger::DecodeCheckpoint(text, "another boot", "fuzz");
  Require(other.ok() && other->empty());
  return 0;
}
