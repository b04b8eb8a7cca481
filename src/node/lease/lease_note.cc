#include "node/lease/lease_note.h"

#include <nlohmann/json.hpp>

#include "node/ledger/slot_fields.h"
#include "node/share/offer.h"

namespace penstock::node::lease {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxCommandBytes = 2048;

Error Damaged(const std::string& id, const std::string& why) {
  return {Code::kDataLoss, "cannot read the lease note of control group " + id + ": " + why};
}

template <typename Visit, base::Of<ledger::Lease> T>
void VisitNote(Visit& visit, T& lease) {
  visit("lease", lease.id, {.required = true});
  visit("slots", lease.slots, {.required = true});
  visit("since", lease.since);
  visit("user", lease.user);
  visit("command", lease.command, {.longest = kMaxCommandBytes});
  visit("labels", lease.labels, {.if_any = true});
}

}  // namespace

std::string EncodeNote(const ledger::Lease& lease) {
  json note;
  base::StructWriter<json> writer(note);
  VisitNote(writer, lease);
  return base::JsonText(note);
}

base::Result<ledger::Lease> DecodeNote(std::string_view note, const std::string& id) {
  ledger::Lease lease{.allocator = std::string(api::kLocalAllocator),
                      .state = ledger::LeaseState::kHeld,
                      .enforcement = ledger::Enforcement::kDevices};
  const auto read = base::ReadFields(note, "note", {.unknown = base::UnknownKeys::kIgnored},
                                     [&](base::StructReader& reader) { VisitNote(reader, lease); });
  if (!read.ok()) return Damaged(id, read.error().message());
  if (lease.id != id) return Damaged(id, "it names lease " + lease.id);
  if (lease.slots.empty()) return Damaged(id, "it names no slots");
  return lease;
}

}  // namespace penstock::node::lease
