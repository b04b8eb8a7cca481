#include "node/allocate/candidates.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/core/quantity.h"
#include "base/core/strings.h"
#include "node/share/assignment.h"
#include "node/share/describe.h"

namespace penstock::node::allocate {
namespace {

using inventory::Entry;

/// The device that an entry is a part of, not itself a part; null if it is none.
const device::Facts* WholeOf(const Entry& entry, const inventory::Snapshot& inventory) {
  if (entry.ancestors.empty()) return nullptr;
  const Entry* whole = inventory.Find(entry.ancestors.back().device);
  return whole == nullptr ? nullptr : whole->facts.get();
}

/// What the vendor's dialect says that a name means on this device.
Result<std::string> ProfileOn(const device::Facts& device, const std::string& name,
                              const device::DialectOf& dialect_of) {
  const device::Dialect* dialect = dialect_of ? dialect_of(device.vendor) : nullptr;
  if (dialect == nullptr) return Error(Code::kNotFound, "the names of profiles are not known");
  ASSIGN(const device::PartProfile* profile, dialect->FindProfile(name, device.profiles));
  return profile->name;
}

/// Recognizes the parts of the requested profile. Asks the dialect once for all devices that have
/// the same profiles: a queue of requests is tried often.
class ProfileMatch {
 public:
  explicit ProfileMatch(const RequestContext& context) : context_(context) {}

  bool Matches(const Entry& entry) {
    const std::string& profile = entry.facts->profile;
    if (profile.empty()) return false;
    if (profile == context_.request.profile) return true;
    const device::Facts* whole = WholeOf(entry, context_.inventory);
    if (whole == nullptr) return false;
    if (whole != last_) meant_ = MeantOn(*whole);
    last_ = whole;
    return profile == meant_;
  }

 private:
  /// The name of the profile on a device; empty: it has none.
  std::string MeantOn(const device::Facts& whole) const {
    if (last_ != nullptr && last_->vendor == whole.vendor && last_->profiles == whole.profiles)
      return meant_;
    auto meant = ProfileOn(whole, context_.request.profile, context_.dialect_of);
    return meant.ok() ? *std::move(meant) : "";
  }

  const RequestContext& context_;
  const device::Facts* last_ = nullptr;  // parts follow their device in the inventory
  std::string meant_;                    // on that device
};

/// Whether the request names neither devices, nor what kind of part it is for.
bool IsForWholeDevices(const Request& request) {
  return request.devices.empty() && request.profile.empty() && request.least_memory.count == 0;
}

/// How messages call what is requested: "2 GPUs of model A100*", "1 part 1g.5gb".
class Wording {
 public:
  explicit Wording(const RequestContext& context)
      : request_(context.request), device_(share::NameOfDevices(context.inventory)) {}

  const std::string& device() const { return device_; }

  std::string Devices(std::size_t count) const {
    const std::string text = std::to_string(count) + " " + (IsOfParts() ? "part" : device_);
    return text + (count == 1 ? "" : "s") + (IsOfParts() ? " " + request_.profile : "");
  }

  /// "one of 4 shares of 2 GPUs of model A100*".
  std::string Requested() const {
    std::string text =
        request_.share > 1 ? "one of " + std::to_string(request_.share) + " shares of " : "";
    text += Devices(static_cast<std::size_t>(request_.count));
    if (request_.least_memory.count > 0)
      text += " with at least " + base::FormatBytes(request_.least_memory) + " of memory";
    if (!request_.vendor.empty()) text += " of vendor " + request_.vendor;
    return request_.model.empty() ? text : text + " of model " + request_.model;
  }

  /// " of that model with so much memory assigned to the local users".
  std::string Assigned() const {
    return std::string(request_.model.empty() ? "" : " of that model") +
           (request_.vendor.empty() ? "" : " of that vendor") +
           (request_.least_memory.count > 0 ? " with so much memory" : "") + " assigned to " +
           share::DescribeAllocator(request_.allocator);
  }

 private:
  bool IsOfParts() const { return !request_.profile.empty(); }

  const Request& request_;
  const std::string device_;
};

using Counts = std::map<std::string, std::size_t>;

/// "3 of 1g.5gb and 1 of 3g.20gb".
std::string Describe(const Counts& profiles) {
  std::vector<std::string> texts;
  for (const auto& [profile, count] : profiles)
    texts.push_back(std::to_string(count) + " of " + profile);
  const std::string last = texts.back();
  texts.pop_back();
  return texts.empty() ? last : base::Join(texts, ", ") + " and " + last;
}

bool IsPresentPart(const Entry& entry) {
  return !entry.facts->profile.empty() && entry.health.state != device::HealthState::kGone;
}

/// Explains that no device is divided into the requested profile.
Error NotDivided(const RequestContext& context, const Wording& wording) {
  const std::string& profile = context.request.profile;
  Counts present;
  std::vector<std::string> can_be;
  std::optional<Error> no_name;
  bool understood = false;
  for (const Entry& entry : context.inventory.devices) {
    if (IsPresentPart(entry)) ++present[entry.facts->profile];
    if (!entry.ancestors.empty() || entry.health.state == device::HealthState::kGone) continue;
    const auto meant = ProfileOn(*entry.facts, profile, context.dialect_of);
    if (meant.ok()) can_be.push_back(share::Describe(*entry.facts));
    if (meant.ok() || meant.error().code() != Code::kInvalidArgument)
      understood = true;
    else
      no_name = meant.error();
  }
  if (no_name && !understood) return *no_name;
  std::string text = "no " + wording.device() + " of this node is divided into " +
                     (present.empty() ? "parts, and " + profile + " was requested" : profile);
  if (!can_be.empty()) {
    text += "; " + can_be.front() +
            (can_be.size() > 1 ? " and " + std::to_string(can_be.size() - 1) + " more" : "") +
            " can be";
  } else {
    std::vector<std::string> names;
    for (const auto& [name, count] : present) names.push_back(name);
    if (const auto near = base::Nearest(profile, names)) text += " (did you mean " + *near + "?)";
  }
  if (!present.empty()) text += "; there are " + Describe(present);
  return {Code::kFailedPrecondition, text};
}

/// Why a part of the requested profile is not a candidate: the first one.
std::string WhyNoCandidate(const RequestContext& context,
                           const std::vector<Candidate>& candidates) {
  ProfileMatch profile(context);
  for (const Entry& entry : context.inventory.devices) {
    if (!IsPresentPart(entry) || !profile.Matches(entry)) continue;
    if (std::ranges::find(candidates, entry.facts.get(), &Candidate::facts) != candidates.end())
      continue;
    return "; " + share::Describe(*entry.facts) +
           (entry.withheld.empty() ? " is not among them (see `penstock status`)"
                                   : " is not offered: " + entry.withheld);
  }
  return "";
}

bool HasShape(const Candidate& candidate, const Request& request) {
  return candidate.IsWhole() || candidate.shares() == request.share;
}

std::string SharedOtherwise(const Candidate& candidate) {
  const std::string shares = std::to_string(candidate.shares());
  return share::Describe(*candidate.facts) + " is shared " + shares +
         " ways: request it with --share " + shares;
}

/// Which requested limit a server does not keep a process to, or only to a higher one; empty: none.
std::string WhyBeyond(const device::Limits& wanted, const device::Limits& in_force) {
  if (wanted.memory.count > 0 && in_force.memory_by == device::Enforcer::kNothing)
    return "its sharing server enforces no limit of memory";
  if (wanted.memory.count > 0 && in_force.memory > wanted.memory)
    return "its sharing server limits the memory of a process to " +
           base::FormatBytes(in_force.memory) + ", not to " + base::FormatBytes(wanted.memory);
  if (wanted.compute_percent > 0 && in_force.compute_by == device::Enforcer::kNothing)
    return "its sharing server enforces no limit of compute time";
  if (wanted.compute_percent > 0 && in_force.compute_percent > wanted.compute_percent)
    return "its sharing server limits the compute time of a process to " +
           std::to_string(in_force.compute_percent) + " %, not to " +
           std::to_string(wanted.compute_percent) + " %";
  return "";
}

std::string CannotEnforce(const device::Limits& wanted) {
  return std::string("this node cannot enforce a limit of ") +
         (wanted.memory.count > 0 ? "memory" : "compute time");
}

bool IsOfServer(const share::OfferedSlot& offered) {
  return offered.slot.shape.sharing == device::Sharing::kServer;
}

/// Whether a server shares devices of the request's allocator.
bool HasServers(const RequestContext& context) {
  return std::ranges::any_of(context.offers, [&](const share::Offer& offer) {
    return offer.allocator == context.request.allocator &&
           std::ranges::any_of(offer.slots, IsOfServer);
  });
}

/// Why the holder of a slot would not be kept to the limits that are requested; empty: it would, or
/// that is known only when the server is ready. Only servers of the driver enforce limits, of whose
/// shares all have the same.
std::string WhyBeyondLimits(const Candidate& candidate, const Request& request) {
  if (request.limits == device::Limits{}) return "";
  const share::OfferedSlot& first = *candidate.slots.front();
  if (!IsOfServer(first))
    return CannotEnforce(request.limits) +
           " on it; request a share of a device that a sharing server limits, or no limit";
  const bool known = first.slot.limits != device::Limits{} ||
                     std::ranges::any_of(candidate.slots, &share::OfferedSlot::usable);
  return known ? WhyBeyond(request.limits, first.slot.limits) : "";
}

/// The candidate that explains best why too few keep to the requested limits: one with a server;
/// null where all of the requested shape do.
const Candidate* BeyondLimits(const RequestContext& context,
                              const std::vector<Candidate>& candidates) {
  const Candidate* found = nullptr;
  for (const Candidate& candidate : candidates)
    if (HasShape(candidate, context.request) &&
        !WhyBeyondLimits(candidate, context.request).empty() &&
        (found == nullptr ||
         (!IsOfServer(*found->slots.front()) && IsOfServer(*candidate.slots.front()))))
      found = &candidate;
  return found;
}

/// The most memory of a device that the request could get otherwise.
std::string LargestOf(const RequestContext& context) {
  Request any = context.request;
  any.least_memory = {1};
  const device::Facts* largest = nullptr;
  for (const Candidate& candidate :
       CandidatesOf({any, context.inventory, context.offers, context.dialect_of}))
    if (Suits(candidate, any) && (largest == nullptr || candidate.facts->memory > largest->memory))
      largest = candidate.facts;
  return largest == nullptr ? ""
                            : "; the most is " + base::FormatBytes(largest->memory) + ", of " +
                                  share::Describe(*largest);
}

/// The profiles of the parts that the request could name; empty: there are none.
std::string PartsInstead(const RequestContext& context) {
  std::set<std::string> profiles;
  for (const share::Offer& offer : context.offers)
    if (offer.by_profile && offer.allocator == context.request.allocator)
      for (const share::OfferedSlot& slot : offer.slots)
        if (const Entry* entry = context.inventory.Find(slot.slot.device))
          profiles.insert(entry->facts->profile);
  if (profiles.empty()) return "";
  const std::vector<std::string> names(profiles.begin(), profiles.end());
  return "; there are parts, which are requested by their profile: " + base::Join(names, ", ");
}

std::string Instead(const RequestContext& context, const std::vector<Candidate>& candidates) {
  if (!context.request.profile.empty()) return WhyNoCandidate(context, candidates);
  return context.request.least_memory.count > 0 ? LargestOf(context) : PartsInstead(context);
}

}  // namespace

std::vector<Candidate> CandidatesOf(const RequestContext& context) {
  const Request& request = context.request;
  std::map<std::string_view, Candidate> by_device;
  for (const share::Offer& offer : context.offers)
    if (offer.allocator == request.allocator && !(offer.by_profile && IsForWholeDevices(request)))
      for (const share::OfferedSlot& slot : offer.slots)
        by_device[slot.slot.device].slots.push_back(&slot);
  std::vector<Candidate> candidates;
  ProfileMatch profile(context);
  for (const Entry& entry : context.inventory.devices) {
    const auto offered = by_device.find(entry.facts->id);
    if (offered == by_device.end() ||
        !(request.model.empty() || device::ModelMatches(request.model, entry.facts->model)) ||
        !(request.vendor.empty() || request.vendor == entry.facts->vendor) ||
        !(request.profile.empty() || profile.Matches(entry)) ||
        entry.facts->memory < request.least_memory)
      continue;
    offered->second.facts = entry.facts.get();
    candidates.push_back(std::move(offered->second));
  }
  return candidates;
}

bool Suits(const Candidate& candidate, const Request& request) {
  return HasShape(candidate, request) && WhyBeyondLimits(candidate, request).empty();
}

std::string WhyUnsuited(const Candidate& candidate, const Request& request) {
  if (!HasShape(candidate, request)) return SharedOtherwise(candidate);
  return share::Describe(*candidate.facts) + ": " + WhyBeyondLimits(candidate, request);
}

Error NothingFound() {
  return {Code::kResourceExhausted, "no device has been found on this node yet"};
}

Error Never(const RequestContext& context, const std::vector<Candidate>& candidates,
            std::size_t suitable) {
  const Request& request = context.request;
  if (context.inventory.devices.empty()) return NothingFound();
  const Wording wording(context);
  const std::string& device = wording.device();
  const auto unseen = std::ranges::count_if(context.inventory.devices, share::NeverRead);
  if (unseen > 0)
    return {Code::kResourceExhausted, std::to_string(unseen) + " " + device +
                                          (unseen == 1 ? "" : "s") + " of this node not read yet"};
  if (request.limits != device::Limits{} && !HasServers(context))
    return {Code::kFailedPrecondition,
            CannotEnforce(request.limits) +
                " for a single run; request a share or a whole device without it"};
  const std::string text = "requested " + wording.Requested() + ", but this node has ";
  if (const Candidate* beyond = BeyondLimits(context, candidates))
    return {Code::kFailedPrecondition, text + wording.Devices(suitable) + wording.Assigned() +
                                           " with the requested limits; " +
                                           WhyUnsuited(*beyond, request)};
  const auto misfit = std::ranges::find_if(
      candidates, [&request](const Candidate& candidate) { return !Suits(candidate, request); });
  if (misfit == candidates.end()) {
    ProfileMatch profile(context);
    const bool divided = request.profile.empty() ||
                         std::ranges::any_of(context.inventory.devices, [&](const Entry& entry) {
                           return IsPresentPart(entry) && profile.Matches(entry);
                         });
    if (!divided) return NotDivided(context, wording);
    return {Code::kFailedPrecondition,
            text + wording.Devices(suitable) + wording.Assigned() + Instead(context, candidates)};
  }
  if (request.share == 1 && suitable == 0)
    return {Code::kFailedPrecondition, "all " + device + "s" + wording.Assigned() +
                                           " are shared, and a whole " + device +
                                           " was requested; " + SharedOtherwise(*misfit)};
  return {Code::kFailedPrecondition, text + wording.Devices(suitable) + " with such shares" +
                                         wording.Assigned() + "; " + SharedOtherwise(*misfit)};
}

Error NeverOfOneVendor(const RequestContext& context, const std::vector<Candidate>& candidates) {
  std::map<std::string, std::size_t> suitable;
  std::size_t all = 0;
  for (const Candidate& candidate : candidates) {
    if (!Suits(candidate, context.request)) continue;
    ++suitable[candidate.facts->vendor];
    ++all;
  }
  if (all < static_cast<std::size_t>(context.request.count)) return Never(context, candidates, all);
  const Wording wording(context);
  std::vector<std::string> each;
  for (const auto& [vendor, count] : suitable)
    each.push_back(wording.Devices(count) + " of " + vendor);
  return {Code::kFailedPrecondition, "requested " + wording.Requested() + ", but this node has " +
                                         base::Join(each, " and ") + wording.Assigned() +
                                         ", and a request gets those of one vendor"};
}

}  // namespace penstock::node::allocate
