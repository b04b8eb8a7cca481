#include "node/lease/lease_note.h"

#include <nlohmann/json.hpp>

#include "base/core/document.h"
#include "node/share/offer.h"

namespace penstock::node::lease {
namespace {

using base::Code;
using base::Error;
using nlohmann::json;

constexpr std::size_t kMaxCommandBytes = 2048;

Error Damaged(const std::string& id, const std::string& why) {
  return {Code::kDataLoss, "cannot read the lease note of control group " + id + ": " + why};
}

json ToJson(const ledger::Slot& slot) {
  json document = {{"id", slot.id}, {"device", slot.device}};
  if (!slot.resource.empty()) document["resource"] = slot.resource;
  if (slot.shape.shares == 1) return document;
  document["sharing"] = device::ToString(slot.shape.sharing);
  document["shares"] = slot.shape.shares;
  return document;
}

/// Notes of an agent without support for shares are about whole devices.
ledger::Slot ReadSlot(base::MapReader& reader) {
  for (const char* key : {"id", "device"}) reader.Require(key);
  ledger::Slot slot{reader.String("id").value_or(""),
                    reader.String("device").value_or(""),
                    reader.String("resource").value_or(""),
                    {}};
  const auto sharing = reader.OneOf("sharing", {"none", "time-slicing", "mps"});
  const auto shares = reader.Int("shares", 1, INT32_MAX).value_or(1);
  if (!sharing || *sharing == "none" || shares == 1) return slot;
  slot.shape = {*sharing == "mps" ? device::Sharing::kMps : device::Sharing::kTimeSlicing,
                static_cast<int>(shares)};
  return slot;
}

}  // namespace

std::string EncodeNote(const ledger::Lease& lease) {
  json slots = json::array();
  for (const ledger::Slot& slot : lease.slots) slots.push_back(ToJson(slot));
  json note = {{"lease", lease.id},
               {"slots", std::move(slots)},
               {"since", base::FormatTime(lease.since)},
               {"user", lease.user},
               {"command", lease.command.substr(0, kMaxCommandBytes)}};
  if (!lease.labels.empty()) note["labels"] = lease.labels;
  return note.dump(-1, ' ', false, json::error_handler_t::replace);
}

base::Result<ledger::Lease> DecodeNote(std::string_view note, const std::string& id) {
  const auto parsed = base::ParseJson(note, "note");
  if (!parsed.ok()) return Damaged(id, parsed.error().message());
  base::Problems problems("note");
  base::MapReader reader(*parsed, "", problems);
  for (const char* key : {"lease", "slots"}) reader.Require(key);
  ledger::Lease lease;
  lease.id = reader.String("lease").value_or("");
  lease.allocator = share::kLocalAllocator;
  lease.state = ledger::LeaseState::kHeld;
  lease.enforcement = ledger::Enforcement::kDevices;
  lease.since = base::ParseTime(reader.String("since").value_or(""));
  lease.user = reader.String("user").value_or("");
  lease.command = reader.String("command").value_or("");
  if (const base::Value* labels = reader.Map("labels"))
    for (const auto& label : *labels->map) lease.labels[label.key] = label.value.text;
  if (const base::Value* slots = reader.List("slots")) {
    for (const base::Value& item : *slots->list) {
      base::MapReader slot(item, "slots", problems);
      lease.slots.push_back(ReadSlot(slot));
    }
  }
  if (!problems.empty()) return Damaged(id, problems.ToError().message());
  if (lease.id != id) return Damaged(id, "it names lease " + lease.id);
  if (lease.slots.empty()) return Damaged(id, "it names no slots");
  return lease;
}

}  // namespace penstock::node::lease
