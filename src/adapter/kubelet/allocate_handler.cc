// The kubelet picks the devices; this file only validates its choice.
#include "adapter/kubelet/allocate_handler.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <utility>

#include <unistd.h>

#include "base/core/strings.h"
#include "base/log.h"
#include "node/share/describe.h"

namespace penstock::adapter::kubelet {
namespace {

using node::ledger::Lease;
using node::ledger::Slot;
using node::share::Offer;
using protocol::kubelet::ContainerEdits;

/// " as nvidia.com/gpu", if that name differs from the slot's.
std::string AsWhat(const Lease& holder, const Slot& wanted) {
  for (const Slot& slot : holder.slots)
    if (slot.device == wanted.device && !slot.resource.empty() && slot.resource != wanted.resource)
      return " as " + slot.resource;
  return "";
}

/// Scans the offer once, however many ids there are; `ids` are sorted.
Result<std::vector<Slot>> UsableSlots(const std::string& resource,
                                      const std::vector<std::string>& ids,
                                      const std::vector<Offer>& offers) {
  const Offer* offer = FindOffer(offers, resource);
  std::vector<const node::share::OfferedSlot*> found(ids.size(), nullptr);
  if (offer != nullptr) {
    for (const auto& offered : offer->slots) {
      const auto at = std::lower_bound(ids.begin(), ids.end(), offered.slot.id);
      if (at != ids.end() && *at == offered.slot.id)
        found[static_cast<std::size_t>(at - ids.begin())] = &offered;
    }
  }
  std::vector<Slot> slots;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (found[i] == nullptr)
      return Error(Code::kNotFound, "device " + ids[i] + " is not (or no longer) offered as " +
                                        resource + " by this node");
    if (!found[i]->usable)
      return Error(Code::kFailedPrecondition,
                   "device " + ids[i] + " cannot be used now: " + found[i]->reason);
    // NVIDIA's device plugin uses these words (internal/plugin/server.go); people search for them.
    if (offer->single && ids.size() > 1 && found[i]->slot.shape.shares > 1)
      return Error(Code::kInvalidArgument,
                   "invalid request: maximum request size for shared resources is 1; found " +
                       std::to_string(ids.size()));
    slots.push_back(found[i]->slot);
  }
  return slots;
}

}  // namespace

std::string RandomUuid() {
  std::array<unsigned, 4> word{};
  if (::getentropy(word.data(), sizeof word) != 0)
    std::generate(word.begin(), word.end(), std::random_device());
  constexpr unsigned kVersion = 0x4000, kVariant = 0x8000;
  std::array<char, 37> text{};
  std::snprintf(text.data(), text.size(), "%08x-%04x-%04x-%04x-%04x%08x", word[0], word[1] >> 16,
                (word[1] & 0xfff) | kVersion, (word[2] & 0x3fff) | kVariant, word[2] >> 16,
                word[3]);
  return text.data();
}

const Offer* FindOffer(const std::vector<Offer>& offers, const std::string& resource) {
  const auto found = std::find_if(offers.begin(), offers.end(), [&](const Offer& offer) {
    return offer.allocator == api::kKubeletAllocator && offer.resource == resource;
  });
  return found == offers.end() ? nullptr : &*found;
}

Result<std::vector<ContainerEdits>> AllocateHandler::Allocate(
    const std::string& resource, const protocol::kubelet::AllocateRequest& request,
    const Now& now) {
  std::vector<ContainerEdits> answers;
  std::vector<std::string> allocated;
  for (const auto& ids : request.containers) {
    auto edits = AllocateContainer(resource, ids, now, allocated);
    if (!edits.ok()) {
      for (const std::string& lease : allocated) node_.ledger.Release(lease);
      base::Log(base::kWarn, "allocation refused",
                {{"resource", resource},
                 {"devices", base::Join(ids, ",")},
                 {"why", edits.error().message()}});
      return edits.error();
    }
    answers.push_back(*std::move(edits));
  }
  return answers;
}

Result<ContainerEdits> AllocateHandler::AllocateContainer(const std::string& resource,
                                                          const std::vector<std::string>& ids,
                                                          const Now& now,
                                                          std::vector<std::string>& allocated) {
  Lease lease;
  lease.since = node_.clock.Wall();
  lease.id = "k-" +
             std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(
                                lease.since.time_since_epoch())
                                .count()) +
             "-" + std::to_string(++allocations_);
  lease.allocator = api::kKubeletAllocator;
  ASSIGN(lease.slots, UsableSlots(resource, ids, now.offers));
  const auto inventory = node_.inventory.published().Get();
  ASSIGN(device::Edits edits, node::allocate::Commit(lease.slots, now.mode.consumer, *inventory,
                                                     node_.dialect_of, *node_.offers.Servers()));
  ASSIGN(const auto devices, node::allocate::DevicesOf(lease.slots, *inventory, node_.dialect_of));
  TRY(ReleaseFormerHolders(lease.slots));
  allocated.push_back(lease.id);
  TRY(node_.ledger.Add(std::move(lease)));
  return BuildContainerResponse(std::move(edits), devices, now.mode);
}

/// Releases what the kubelet now allocates again under the same name: the former holder has
/// released it, whether or not the agent has learned of that. What else that one has stays: it may
/// be an init container, whose devices the container after it gets, or some of them. The kubelet
/// does not know other allocators and counts each resource name separately.
base::Status AllocateHandler::ReleaseFormerHolders(const std::vector<Slot>& slots) {
  for (const Slot& slot : slots) {
    const auto snapshot = node_.ledger.Get();
    const Lease* holder = snapshot->InTheWayOf(slot);
    if (holder == nullptr) continue;
    const auto again = [&slots](const Slot& one) {
      return std::ranges::any_of(slots, [&one](const Slot& wanted) {
        return one.id == wanted.id && (one.resource.empty() || one.resource == wanted.resource);
      });
    };
    const bool same = std::ranges::any_of(
        holder->slots, [&](const Slot& one) { return one.id == slot.id && again(one); });
    if (holder->allocator != api::kKubeletAllocator || !same)
      return Error(Code::kFailedPrecondition, "device " + slot.device + " is still held by " +
                                                  node::share::Describe(*holder) +
                                                  AsWhat(*holder, slot));
    Lease rest = *holder;
    rest.since = node_.clock.Wall();  // usage until now is recorded
    std::erase_if(rest.slots, again);
    node_.ledger.Release(holder->id);
    if (!rest.slots.empty()) TRY(node_.ledger.Add(std::move(rest)));
  }
  return {};
}

}  // namespace penstock::adapter::kubelet
