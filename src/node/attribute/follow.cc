#include "node/attribute/follow.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "api/allocators.h"
#include "base/lifetime.h"

namespace penstock::node::attribute {

namespace {

/// How long after its first sight a process is looked at again. `penstock run`, for one, gets its
/// devices and then executes the user's program; in between, the command line may also be empty.
constexpr std::array<base::Duration, 2> kLookAgain = {std::chrono::seconds(1),
                                                      std::chrono::seconds(5)};

/// Local leases learn their processes from their group, but read it only on request; processes on a
/// device must be known at once.
std::vector<ledger::Process> WithProcesses(std::vector<ledger::Process> known,
                                           const std::vector<ledger::Process>& on_devices) {
  for (const ledger::Process& process : on_devices) {
    const auto same =
        std::ranges::find_if(known, [&](const auto& one) { return one.pid == process.pid; });
    if (same == known.end())
      known.push_back(process);
    else if (same->start != process.start)
      *same = process;
    else
      same->command = process.command;
  }
  return known;
}

std::vector<ledger::Process> ListIn(const ledger::Processes& lists, const std::string& key) {
  const auto found = lists.find(key);
  return found == lists.end() ? std::vector<ledger::Process>{} : found->second;
}

}  // namespace

struct Follow::State : std::enable_shared_from_this<State> {
  State(base::Executor& c, base::Executor& i, std::string p, inventory::Inventory& inv,
        ledger::Ledger& led, IsServer s)
      : control(c),
        io(i),
        proc_root(std::move(p)),
        is_server(std::move(s)),
        inventory(inv),
        ledger(led) {}

  void Changed() {
    again = true;
    if (updating || ended) return;
    updating = true;
    control.Post([self = shared_from_this()] { self->Update(); });
  }

  void Update() {
    if (ended) return;
    again = false;
    const auto pids = PidsOf(*inventory.published().Get());
    if (pids.empty()) return Apply({});
    io.Post([self = shared_from_this(), pids] {
      auto table = ReadProcesses(self->proc_root, pids);
      if (self->is_server)
        std::erase_if(table, [&](const auto& one) {
          return pids.contains(one.first) && self->is_server(one.second);
        });
      self->control.Post([self, table = std::move(table)] { self->Apply(table); });
    });
  }

  void Apply(const ProcessTable& table) {
    if (ended) return;
    LookAgainAtNew(table);
    const auto leases = ledger.Get();
    ledger::Attributed now = Attribute(*inventory.published().Get(), *leases, table);
    const ledger::Processes on_devices = std::exchange(now.by_lease, {});
    for (const ledger::Lease& lease : leases->leases) {
      auto processes = ListIn(on_devices, lease.id);
      if (!api::FindAllocator(lease.allocator).counts_itself)
        processes = WithProcesses(lease.processes, processes);
      if (processes != lease.processes) now.by_lease[lease.id] = std::move(processes);
    }
    ledger.SetAttributed(std::move(now));
    updating = false;
    if (again) Changed();
  }

  void LookAgainAtNew(const ProcessTable& table) {
    std::set<std::pair<pid_t, std::uint64_t>> now;
    for (const auto& [pid, process] : table) now.emplace(pid, process.start);
    if (!std::ranges::includes(seen, now)) {
      for (std::size_t i = 0; i < kLookAgain.size(); ++i) {
        control.Cancel(timers[i]);
        timers[i] = control.PostAfter(kLookAgain[i], base::IfAlive(this, &State::Changed));
      }
    }
    seen = std::move(now);
  }

  base::Executor& control;
  base::Executor& io;
  const std::string proc_root;
  const IsServer is_server;
  inventory::Inventory& inventory;
  ledger::Ledger& ledger;
  std::set<std::pair<pid_t, std::uint64_t>> seen;  ///< in the last table, with its start time
  std::array<base::TimerId, kLookAgain.size()> timers{};
  bool updating = false, again = false, ended = false;
};

Follow::Follow(base::Executor& control, base::Executor& io, std::string proc_root,
               inventory::Inventory& inventory, ledger::Ledger& ledger, IsServer is_server)
    : state_(std::make_shared<State>(control, io, std::move(proc_root), inventory, ledger,
                                     std::move(is_server))) {}

Follow::~Follow() { state_->ended = true; }

void Follow::DevicesChanged() { state_->Changed(); }

}  // namespace penstock::node::attribute
