// The only file of the ledger that uses nlohmann::json.
#include "node/ledger/checkpoint.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "node/ledger/slot_fields.h"
#include "os/kept_file.h"

namespace penstock::node::ledger {
namespace {

constexpr int kVersion = 1, kLimitsVersion = 1;
// Per lease. The remaining processes are found again: a control group lists its own; without one,
// they are found by their ancestors and their environment.
constexpr std::size_t kMaxProcesses = 16;
constexpr std::size_t kMaxCommandBytes = 256;

constexpr base::Names<LeaseState, 2> kStates{
    {{LeaseState::kHeld, "held"}, {LeaseState::kAllocated, "handed"}}};
constexpr base::Names<Enforcement, 2> kEnforcements{
    {{Enforcement::kDevices, "devices"}, {Enforcement::kVisibility, "visibility"}}};

/// Those of a part are in the checkpoint (slot_fields.h).
bool HasOwnLimits(const Slot& slot) {
  return slot.limits != device::Limits{} && slot.ancestors.empty();
}

LeaseLimits LimitsOf(const Lease& lease) {
  LeaseLimits limits{.id = lease.id, .slots = {}};
  for (const Slot& slot : lease.slots)
    if (HasOwnLimits(slot)) limits.slots.push_back({slot.id, slot.limits});
  return limits;
}

}  // namespace

template <typename Visit, base::Of<LeaseLimits::OfSlot> T>
static void VisitFields(Visit& visit, T& slot) {
  visit("id", slot.id, {.required = true});
  visit("limits", slot.limits, {.required = true});
}

template <typename Visit, base::Of<LeaseLimits> T>
static void VisitFields(Visit& visit, T& lease) {
  visit("id", lease.id, {.required = true});
  visit("slots", lease.slots, {.required = true});
}

template <typename Visit, base::Of<Process> T>
static void VisitFields(Visit& visit, T& process) {
  visit("pid", process.pid, {.required = true, .least = 1});
  visit("start", process.start);
  visit("user", process.user);
  visit("command", process.command, {.longest = kMaxCommandBytes});
}

template <typename Visit, base::Of<Lease> T>
static void VisitFields(Visit& visit, T& lease) {
  visit("id", lease.id, {.required = true});
  visit("door", lease.allocator, {.required = true});
  visit("slots", lease.slots, {.required = true});
  visit.Named("state", lease.state, kStates);
  visit.Named("enforcement", lease.enforcement, kEnforcements);
  visit("since", lease.since);
  visit("processes", lease.processes, {.longest = kMaxProcesses});
  visit("user", lease.user);
  visit("command", lease.command, {.longest = kMaxCommandBytes});
  visit("pod", lease.pod);
  visit("podUid", lease.pod_uid);
  visit("namespace", lease.namespace_name);
  visit("container", lease.container);
  visit("labels", lease.labels, {.if_any = true});
  if constexpr (Visit::kReads)
    for (Slot& slot : lease.slots) slot = WithShape(std::move(slot));
}

std::string EncodeCheckpoint(const Snapshot& snapshot, std::string_view boot_id) {
  return os::EncodeKept<nlohmann::json>(kVersion, [&](auto& write) {
    write("bootId", std::string(boot_id));
    write("leases", snapshot.leases);
  });
}

base::Result<std::vector<Lease>> DecodeCheckpoint(std::string_view text, std::string_view boot_id,
                                                  std::string_view file) {
  std::string written_in;
  std::vector<Lease> leases;
  TRY(os::DecodeKept(kVersion, text, file,
                     [&](base::StructReader& read) {
                       read("bootId", written_in);
                       read("leases", leases);
                     },
                     {.bytes = kMaxCheckpointBytes}));
  if (written_in != boot_id) leases.clear();
  return leases;
}

std::string EncodeLimits(const Snapshot& snapshot, std::string_view boot_id) {
  std::vector<LeaseLimits> leases;
  for (const Lease& lease : snapshot.leases)
    if (std::ranges::any_of(lease.slots, HasOwnLimits)) leases.push_back(LimitsOf(lease));
  return os::EncodeKept<nlohmann::json>(kLimitsVersion, [&](auto& write) {
    write("bootId", std::string(boot_id));
    write("leases", leases);
  });
}

base::Result<std::vector<LeaseLimits>> DecodeLimits(std::string_view text, std::string_view boot_id,
                                                    std::string_view file) {
  std::string written_in;
  std::vector<LeaseLimits> leases;
  TRY(os::DecodeKept(kLimitsVersion, text, file,
                     [&](base::StructReader& read) {
                       read("bootId", written_in);
                       read("leases", leases);
                     },
                     {.bytes = kMaxCheckpointBytes}));
  if (written_in != boot_id) leases.clear();
  std::ranges::sort(leases, {}, &LeaseLimits::id);
  return leases;
}

void RestoreLimits(const std::vector<LeaseLimits>& limits, Lease& lease) {
  const auto kept = std::ranges::lower_bound(limits, lease.id, {}, &LeaseLimits::id);
  if (kept == limits.end() || kept->id != lease.id) return;
  for (Slot& slot : lease.slots) {
    const auto of_slot = std::ranges::find(kept->slots, slot.id, &LeaseLimits::OfSlot::id);
    if (of_slot != kept->slots.end() && slot.ancestors.empty()) slot.limits = of_slot->limits;
  }
}

bool LimitsDiffer(const Leases& now, const Leases& before) {
  const auto has_limits = [](const Lease& lease) {
    return std::ranges::any_of(lease.slots, HasOwnLimits);
  };
  auto a = now.begin(), b = before.begin();
  while (a != now.end() || b != before.end()) {
    const bool both = a != now.end() && b != before.end();
    if (both && a.shared() == b.shared()) {
      ++a, ++b;
    } else if (both && a->id == b->id) {
      if (LimitsOf(*a++) != LimitsOf(*b++)) return true;
    } else if (b == before.end() || (a != now.end() && a->id < b->id)) {
      if (has_limits(*a++)) return true;
    } else if (has_limits(*b++)) {
      return true;
    }
  }
  return false;
}

}  // namespace penstock::node::ledger
