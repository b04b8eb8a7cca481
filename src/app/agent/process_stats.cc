#include "app/agent/process_stats.h"

#include <algorithm>
#include <optional>

#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"
#include "os/process/process.h"
#include "os/trim.h"

namespace penstock::app {
namespace {

constexpr std::uint64_t kGrown = 1u << 20, kMuch = 128u << 10;
constexpr base::Duration kPace = std::chrono::seconds(10), kSoon = std::chrono::seconds(3);

struct Resident {
  std::uint64_t all = 0, own = 0;  // bytes; own: not backed by a file
};

Resident ResidentOf(const std::string& process) {
  const auto statm = os::ReadFile("/proc/" + process + "/statm",
                                  256);  // proc(5): size, resident, shared, ... in pages
  const auto fields = base::Split(statm.value_or(""), ' ');
  if (fields.size() < 3) return {};
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t all = base::ParseUint(fields[1]).value_or(0),
                      of_files = base::ParseUint(fields[2]).value_or(0);
  return {all * page, (all - std::min(all, of_files)) * page};
}

/// The agent's private memory beyond the heap in use: what malloc keeps, and what threads and
/// variables need.
std::uint64_t SpareBytes() {
  const std::uint64_t own = ResidentOf("self").own;
  return own - std::min<std::uint64_t>(own, os::HeapInUse());
}

std::vector<node::metrics::ProcessCost> ReadStats(const std::map<std::string, pid_t>& processes) {
  std::vector<node::metrics::ProcessCost> process_stats;
  for (const auto& [name, pid] : processes) {
    if (pid <= 0) continue;
    const double seconds = static_cast<double>(os::ReadCpuTime("/proc", pid).value_or(0)) / 1e9;
    process_stats.push_back({name, ResidentOf(std::to_string(pid)).all, seconds});
  }
  return process_stats;
}

}  // namespace

struct ProcessStats::State : std::enable_shared_from_this<State> {
  void Poll() {
    io->Post([weak = weak_from_this(), pids = processes()] {
      const auto self = weak.lock();
      if (!self) return;
      const base::Duration pace = self->GiveBack() ? kSoon : kPace;
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

  /// Returns the memory that a burst of work freed, and the code that only the burst needed, to the
  /// system: the heap would keep it however quiet the agent is afterwards. On the I/O executor.
  /// Returns true if it found much, so that there may soon be more.
  bool GiveBack() {
    const std::uint64_t spare = SpareBytes();
    if (!giving_back && (!least_spare || spare <= *least_spare + kGrown)) {
      least_spare = std::min(least_spare.value_or(spare), spare);
      return false;
    }
    os::TrimHeap();
    os::TrimLoaded([](std::string_view) { return true; });
    least_spare = SpareBytes();
    giving_back = spare > *least_spare + kMuch;
    return giving_back;
  }

  std::optional<std::uint64_t> least_spare;  // on the I/O executor; since the heap was trimmed
  bool giving_back = false;  // on the I/O executor: after a burst, the last check still found much
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
