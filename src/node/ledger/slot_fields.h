// The fields of a slot, for the ledger's checkpoint and for the notes of control groups.
#pragma once

#include "base/core/fields.h"
#include "node/ledger/ledger.h"

namespace penstock::node::ledger {

inline constexpr base::Names<device::Sharing, 3> kSharingNames{
    {{device::Sharing::kNone, "none"},
     {device::Sharing::kTimeSlicing, "time-slicing"},
     {device::Sharing::kServer, "mps"}}};

template <typename Visit, base::Of<Slot> T>
void VisitFields(Visit& visit, T& slot) {
  visit("id", slot.id, {.filled = true});
  visit("device", slot.device, {.filled = true});
  visit("resource", slot.resource, {.if_any = true});
  if (Visit::kReads || slot.shape != device::Shape{}) {
    visit.Named("sharing", slot.shape.sharing, kSharingNames);
    visit("shares", slot.shape.shares, {.least = 1});
  }
  visit("partOf", slot.ancestors, {.if_any = true});
  visit("memory", slot.capacity.memory, {.if_any = true});
  visit("computeUnits", slot.capacity.compute_units, {.if_any = true});
  if constexpr (Visit::kReads)
    if (slot.shape.sharing == device::Sharing::kNone || slot.shape.shares == 1) slot.shape = {};
}

}  // namespace penstock::node::ledger

namespace penstock::node::inventory {

template <typename Visit, base::Of<Ancestor> T>
void VisitFields(Visit& visit, T& ancestor) {
  visit("device", ancestor.device, {.filled = true});
  visit("memory", ancestor.capacity.memory, {.if_any = true});
  visit("computeUnits", ancestor.capacity.compute_units, {.if_any = true});
}

}  // namespace penstock::node::inventory
