#include "node/health/kernel_log.h"

#include <algorithm>
#include <deque>

#include <sys/epoll.h>

#include "device/kinds.h"
#include "os/watch/kmsg.h"
#include "os/watch/watch.h"

namespace penstock::node::health {

namespace {

constexpr std::size_t kMaxHistory = 4096;
constexpr base::Duration kMinAge = std::chrono::milliseconds(1);

/// Records that programs write to /dev/kmsg never have facility 0, whatever the program asks for
/// (kernel/printk/printk.c, devkmsg_write).
bool IsOfTheKernel(const os::KernelRecord& record) { return record.priority < 8; }

/// Evidence in an earlier record.
struct Found {
  const device::Dialect* dialect = nullptr;
  device::Evidence evidence;
  std::uint64_t microseconds = 0;
};

}  // namespace

struct KernelLogFeed::State {
  State(os::Loop& l, os::KernelLog k, std::vector<const device::Dialect*> d, Callback h)
      : loop(l), log(std::move(k)), dialects(std::move(d)), on_evidence(std::move(h)) {}

  void Read() {
    const auto records = log.Read();
    for (const os::KernelRecord& record : records) {
      for (const device::Dialect* dialect : dialects) {
        const auto evidence = dialect->FromKernelLog(record.text);
        if (!evidence || evidence->kind == device::kDriverLoaded) continue;
        last = record.sequence;
        on_evidence(dialect->vendor(), *evidence, base::Duration(0));
      }
    }
    // One read does not consume a whole flood of records. A device becomes readable again while
    // more remain; a file does not, so post another read, which lets the loop serve others in
    // between.
    if (log.pollable() || records.empty()) return;
    loop.Post([this, weak = std::weak_ptr(alive)] {
      if (!weak.expired()) Read();
    });
  }

  /// Reads all existing records. Records that `options` excludes only advance `last`.
  void ReadPast(const Options& options) {
    std::deque<Found> found;
    for (auto records = log.Read(); !records.empty(); records = log.Read()) {
      for (const os::KernelRecord& record : records) {
        last = record.sequence;
        if (options.history && (!options.after || record.sequence > *options.after))
          Match(record, found);
      }
    }
    // The kernel stamps its records with a clock that does not advance during suspend, as does the
    // loop's clock.
    const auto now = std::chrono::duration_cast<std::chrono::microseconds>(
        loop.clock().Now().time_since_epoch());
    for (const Found& one : found)
      on_evidence(
          one.dialect->vendor(), one.evidence,
          std::max<base::Duration>(kMinAge, now - std::chrono::microseconds(std::min<std::uint64_t>(
                                                      one.microseconds, INT64_MAX))));
  }

  void Match(const os::KernelRecord& record, std::deque<Found>& found) const {
    for (const device::Dialect* dialect : dialects) {
      const auto evidence = dialect->FromKernelLog(record.text);
      if (!evidence) continue;
      if (evidence->kind != device::kDriverLoaded) {
        found.push_back({dialect, *evidence, record.microseconds});
      } else if (IsOfTheKernel(record)) {
        std::erase_if(found, [dialect](const Found& one) { return one.dialect == dialect; });
      }
    }
    if (found.size() > kMaxHistory) found.pop_front();
  }

  os::Loop& loop;
  os::KernelLog log;
  std::vector<const device::Dialect*> dialects;
  Callback on_evidence;
  std::optional<std::uint64_t> last;
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  // For a log that is a plain file: epoll does not support those.
  std::unique_ptr<os::PathWatch> watch;
};

KernelLogFeed::KernelLogFeed() = default;

base::Result<std::unique_ptr<KernelLogFeed>> KernelLogFeed::Open(
    os::Loop& loop, const std::string& path, std::vector<const device::Dialect*> dialects,
    Callback on_evidence, Options options) {
  ASSIGN(os::KernelLog log, os::KernelLog::Open(path, false));
  std::unique_ptr<KernelLogFeed> feed(new KernelLogFeed);
  feed->state_ =
      std::make_unique<State>(loop, std::move(log), std::move(dialects), std::move(on_evidence));
  State* const state = feed->state_.get();
  state->ReadPast(options);
  if (state->log.pollable()) {
    TRY(loop.Watch(state->log.fd(), EPOLLIN, [state](std::uint32_t) { state->Read(); }));
  } else {
    // Each read continues where the last one ended: a burst of records need not end first.
    state->watch = std::make_unique<os::PathWatch>(
        loop, path, [state] { state->Read(); }, base::Duration::zero());
  }
  return feed;
}

KernelLogFeed::~KernelLogFeed() {
  if (state_ && state_->log.pollable()) state_->loop.Unwatch(state_->log.fd());
}

std::optional<std::uint64_t> KernelLogFeed::last() const { return state_->last; }

}  // namespace penstock::node::health
