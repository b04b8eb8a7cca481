// A timer and two reads.
#include "app/agent/costs.h"

#include <algorithm>

#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"
#include "os/process.h"
#include "os/trim.h"

namespace penstock::app {
namespace {

constexpr std::uint64_t kGrown = 4u << 20;

std::uint64_t ResidentBytes(pid_t pid) {
  const auto statm = os::ReadFile("/proc/" + std::to_string(pid) + "/statm", 256);  // proc(5): size, resident, ... in pages
  if (!statm.ok()) return 0;
  const auto fields = base::Split(*statm, ' ');
  return fields.size() < 2 ? 0 : base::ParseUint(fields[1]).value_or(0) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::vector<node::metrics::ProcessCost> Look(const std::map<std::string, pid_t>& processes) {
  std::vector<node::metrics::ProcessCost> costs;
  for (const auto& [name, pid] : processes)
    if (pid > 0) costs.push_back({name, ResidentBytes(pid), static_cast<double>(os::ReadCpuTime("/proc", pid).value_or(0)) / 1e9});
  return costs;
}

}  // namespace

struct Costs::State : std::enable_shared_from_this<State> {
  void Ask() {
    io->Post([weak = weak_from_this(), pids = processes()] {
      auto costs = Look(pids);
      const auto self = weak.lock();
      if (!self) return;
      self->control->Post([weak, costs = std::move(costs)] {
        const auto here = weak.lock();
        if (!here) return;
        here->latest = costs;
        here->GiveBack();
        here->timer = here->control->PostAfter(std::chrono::seconds(10), [weak] {
          if (const auto again = weak.lock()) again->Ask();
        });
      });
    });
  }

  /// What a burst of work freed goes back to the machine: the heap would keep it, however quiet it is afterwards.
  void GiveBack() {
    const auto agent = std::find_if(latest.begin(), latest.end(), [](const auto& cost) { return cost.process == "agent"; });
    if (agent == latest.end()) return;
    if (settled != 0 && agent->resident_bytes > settled + kGrown) {
      io->Post(os::TrimHeap);
      settled = 0;  // the next look tells what is needed
    } else {
      settled = settled == 0 ? agent->resident_bytes : std::min(settled, agent->resident_bytes);
    }
  }

  std::uint64_t settled = 0;  // resident bytes of the agent when it was quiet; 0: not known
  base::Executor* control = nullptr;
  base::Executor* io = nullptr;
  std::function<std::map<std::string, pid_t>()> processes;
  std::vector<node::metrics::ProcessCost> latest;
  base::TimerId timer = 0;
};

Costs::Costs(base::Executor& control, base::Executor& io, std::function<std::map<std::string, pid_t>()> processes)
    : state_(std::make_shared<State>()) {
  state_->control = &control;
  state_->io = &io;
  state_->processes = std::move(processes);
  state_->Ask();
}

Costs::~Costs() { state_->control->Cancel(state_->timer); }

const std::vector<node::metrics::ProcessCost>& Costs::Get() const { return state_->latest; }

}  // namespace penstock::app
