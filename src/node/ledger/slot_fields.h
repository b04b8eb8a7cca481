// The fields of a slot, for the ledger's checkpoint and for the notes of control groups.
#pragma once

#include "base/core/fields.h"
#include "node/ledger/ledger.h"

namespace penstock::node::ledger {

inline constexpr base::Names<device::Sharing, 3> kSharingNames{
    {{device::Sharing::kNone, "none"},
     {device::Sharing::kTimeSlicing, "time-slicing"},
     {device::Sharing::kServer, "mps"}}};

inline constexpr base::Names<device::Enforcer, 2> kEnforcerNames{
    {{device::Enforcer::kNothing, "nothing"}, {device::Enforcer::kServer, "server"}}};

template <typename Visit, base::Of<Slot> T>
void VisitFields(Visit& visit, T& slot) {
  visit("id", slot.id, {.filled = true});
  visit("device", slot.device, {.filled = true});
  visit("resource", slot.resource, {.if_any = true});
  if (Visit::kReads || slot.shape != device::Shape{}) {
    visit.Named("sharing", slot.shape.sharing, kSharingNames);
    visit("shares", slot.shape.shares, {.least = 1});
  }
  // 0.1.0 refuses a checkpoint with keys that it does not know, and knows no parts. The limits of
  // other slots are in a file of their own (EncodeLimits).
  if (Visit::kReads || !slot.ancestors.empty()) {
    visit("partOf", slot.ancestors);
    visit("memory", slot.capacity.memory);
    visit("computeUnits", slot.capacity.compute_units);
    visit("limits", slot.limits);
  }
  if constexpr (Visit::kReads) {
    // Only parts are written with these keys; the user of a run may have replaced a note.
    if (slot.ancestors.empty()) {
      slot.capacity = {};
      slot.limits = {};
    }
    if (slot.shape.sharing == device::Sharing::kNone || slot.shape.shares == 1) slot.shape = {};
  }
}

}  // namespace penstock::node::ledger

namespace penstock::device {

template <typename Visit, base::Of<Limits> T>
void VisitFields(Visit& visit, T& limits) {
  visit("memory", limits.memory);
  visit.Named("memoryBy", limits.memory_by, node::ledger::kEnforcerNames);
  visit("computePercent", limits.compute_percent, {.most = 100});
  visit.Named("computeBy", limits.compute_by, node::ledger::kEnforcerNames);
}

}  // namespace penstock::device

namespace penstock::node::inventory {

template <typename Visit, base::Of<Ancestor> T>
void VisitFields(Visit& visit, T& ancestor) {
  visit("device", ancestor.device, {.filled = true});
  visit("memory", ancestor.capacity.memory);
  visit("computeUnits", ancestor.capacity.compute_units);
}

}  // namespace penstock::node::inventory
