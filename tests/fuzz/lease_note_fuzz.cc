// The note of a control group, an extended attribute: whoever may write to the group's folder may have replaced it.
#include <cstdint>
#include <string>

#include "door/lease_note.h"
#include "node/share/offer.h"
#include "oracle.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  using fuzz::Require;
  const std::string id = "r-1";
  const auto lease = door::DecodeNote(fuzz::Text(data, size), id);
  if (!lease.ok()) {
    Require(lease.error().code() == base::Code::kDataLoss && lease.error().message().find(id) != std::string::npos);
    return 0;
  }
  Require(lease->id == id && lease->door == node::share::kLocalDoor && !lease->slots.empty() && lease->processes.empty());
  for (const auto& slot : lease->slots) Require(slot.shape.shares >= 1);
  const auto again = door::DecodeNote(door::EncodeNote(*lease), id);
  Require(again.ok());
  // A note has room for the first part of a long command.
  node::ledger::Lease same = *again;
  if (same.command != lease->command) same.command = lease->command;
  Require(same == *lease && lease->command.starts_with(again->command.substr(0, again->command.find("\xef\xbf\xbd"))));
  return 0;
}
