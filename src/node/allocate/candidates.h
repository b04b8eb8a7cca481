// Finds which offered devices a request could ever get, and explains why there are too few. Pure.
// Private to node/allocate.
#pragma once

#include <string>
#include <vector>

#include "node/allocate/allocate.h"

namespace penstock::node::allocate {

/// A device of the allocator, with its offered slots.
struct Candidate {
  const device::Facts* facts = nullptr;
  std::vector<const share::OfferedSlot*> slots;  // in order of share

  int shares() const { return slots.front()->slot.shape.shares; }
  bool cut() const { return slots.front()->cut; }
  bool IsWhole() const {
    return shares() == 1 || cut();
  }  // a device that was cut is assigned whole, so requests for any shape can have it in turn
};

/// What a request is decided by.
struct RequestContext {
  const Request& request;
  const inventory::Snapshot& inventory;
  const std::vector<share::Offer>& offers;
  const device::DialectOf& dialect_of;
};

/// The devices that are offered to the request's allocator and are of the requested model, profile
/// and memory, in the order of the inventory.
std::vector<Candidate> CandidatesOf(const RequestContext& context);

/// Whether the configuration ever allows this request to have the device: in this shape, and with
/// the requested limits in force, unless these are not known before its server is ready.
bool Suits(const Candidate& candidate, const Request& request);

/// Why it does not: "GPU 0 (...) is shared 4 ways: request it with --share 4".
std::string WhyUnsuited(const Candidate& candidate, const Request& request);

/// No device has been found yet.
Error NothingFound();

/// Says why the allocator does not have as many devices as requested, and which request is
/// possible; or that this is not known yet. `suitable`: how many of the candidates suit.
Error Never(const RequestContext& context, const std::vector<Candidate>& candidates,
            std::size_t suitable);

/// The same where these are of several vendors, of which none has enough.
Error NeverOfOneVendor(const RequestContext& context, const std::vector<Candidate>& candidates);

}  // namespace penstock::node::allocate
