// Fuzzes the file of leases' limits, as ledger_checkpoint_fuzz.cc does the checkpoint beside it.
#include <cstdint>

#include "../oracle.h"
#include "node/ledger/checkpoint.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  using fuzz::Require;
  const auto limits = node::ledger::DecodeLimits(fuzz::Text(data, size), "boot", "fuzz");
  if (!limits.ok()) {
    const base::Code code = limits.error().code();
    Require(code == base::Code::kDataLoss || code == base::Code::kFailedPrecondition);
    Require(limits.error().message().find("fuzz") != std::string::npos);
    return 0;
  }
  for (const auto& of_lease : *limits) {
    node::ledger::Lease lease{.id = of_lease.id};
    for (const auto& slot : of_lease.slots) {
      Require(slot.limits.compute_percent >= 0 && slot.limits.compute_percent <= 100);
      lease.slots.push_back({slot.id, slot.id});
    }
    node::ledger::RestoreLimits(*limits, lease);
  }
  const auto other = node::ledger::DecodeLimits(fuzz::Text(data, size), "another boot", "fuzz");
  Require(other.ok());
  return 0;
}
