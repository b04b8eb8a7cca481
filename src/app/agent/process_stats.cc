#include "app/agent/process_stats.h"

#include "os/process/process.h"
#include "os/trim.h"

namespace penstock::app {
namespace {

constexpr base::Duration kPace = std::chrono::seconds(10), kSoon = std::chrono::seconds(3);

std::vector<node::metrics::ProcessCost> ReadStats(const std::map<std::string, pid_t>& processes) {
  std::vector<node::metrics::ProcessCost> process_stats;
  for (const auto& [name, pid] : processes) {
    if (pid <= 0) continue;
    const double seconds = static_cast<double>(os::ReadCpuTime("/proc", pid).value_or(0)) / 1e9;
    process_stats.push_back({name, os::ReadResident(std::to_string(pid)), seconds});
  }
  return process_stats;
}

}  // namespace

struct ProcessStats::State : std::enable_shared_from_this<State> {
  void Poll() {
    io->Post([weak = weak_from_this(), pids = processes()] {
      const auto self = weak.lock();
      if (!self) return;
      const base::Duration pace = self->memory.GiveBack() ? kSoon : kPace;
      self->control->Post([weak, pace, process_stats = ReadStats(pids)] {
        const auto here = weak.lock();
        if (!here) return;
        here->latest = process_stats;
        here->timer = here->control->PostAfter(pace, [weak] {
          if (const auto again = weak.lock()) again->Poll();
        });
      });
    });
  }

  os::SpareMemory memory;  // on the I/O executor
  base::Executor* control = nullptr;
  base::Executor* io = nullptr;
  std::function<std::map<std::string, pid_t>()> processes;
  std::vector<node::metrics::ProcessCost> latest;
  base::TimerId timer = 0;
};

ProcessStats::ProcessStats(base::Executor& control, base::Executor& io,
                           std::function<std::map<std::string, pid_t>()> processes)
    : state_(std::make_shared<State>()) {
  state_->control = &control;
  state_->io = &io;
  state_->processes = std::move(processes);
  state_->Poll();
}

ProcessStats::~ProcessStats() { state_->control->Cancel(state_->timer); }

const std::vector<node::metrics::ProcessCost>& ProcessStats::Get() const { return state_->latest; }

}  // namespace penstock::app
