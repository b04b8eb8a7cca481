// The only file of the ledger that uses nlohmann::json.
#include "node/ledger/checkpoint.h"

#include <nlohmann/json.hpp>

#include "node/ledger/slot_fields.h"
#include "os/kept_file.h"

namespace penstock::node::ledger {
namespace {

constexpr int kVersion = 1;
// Per lease. The remaining processes are found again: a control group lists its own; without one,
// they are found by their ancestors and their environment.
constexpr std::size_t kMaxProcesses = 16;
constexpr std::size_t kMaxCommandBytes = 256;

constexpr base::Names<LeaseState, 2> kStates{
    {{LeaseState::kHeld, "held"}, {LeaseState::kAllocated, "handed"}}};
constexpr base::Names<Enforcement, 2> kEnforcements{
    {{Enforcement::kDevices, "devices"}, {Enforcement::kVisibility, "visibility"}}};

}  // namespace

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

}  // namespace penstock::node::ledger
