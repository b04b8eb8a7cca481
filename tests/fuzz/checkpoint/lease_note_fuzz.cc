// Fuzzes the note of a control group, an extended attribute: any user who may write to the group's
// folder may have replaced it.
#include <cstdint>
#include <string>

#include "../oracle.h"
#include "node/lease/lease_note.h"
#include "node/share/offer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  using fuzz::Require;
  const std::string id = "r-1";
  const auto lease = node::lease::DecodeNote(fuzz::Text(data, size), id);
  if (!lease.ok()) {
    Require(lease.error().code() == base::Code::kDataLoss &&
            lease.error().message().find(id) != std::string::npos);
    return 0;
  }
  Require(lease->id == id && lease->allocator == api::kLocalAllocator && !lease->slots.empty() &&
          lease->processes.empty());
  for (const auto& slot : lease->slots) Require(slot.shape.shares >= 1);
  const auto again = node::lease::DecodeNote(node::lease::EncodeNote(*lease), id);
  Require(again.ok());
  // A note stores only the beginning of a long command.
  node::ledger::Lease same = *again;
  if (same.command != lease->command) same.command = lease->command;
  Require(same == *lease && lease->command.starts_with(
                                again->command.substr(0, again->command.find("\xef\xbf\xbd"))));
  return 0;
}
